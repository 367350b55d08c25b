"""One site for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.python_client.authentication.site import Site, running_site


@pytest.fixture(scope="package")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    for library in ("gssapi", "ldap3", "jwt"):
        pytest.importorskip(library)
    with running_site(tmp_path_factory.mktemp("site")) as running:
        yield running
