"""The schema scripts of Hive's own distributions, from Maven Central, and databases created by them."""

from __future__ import annotations

import re
import tarfile
from functools import cache
from pathlib import Path

import pytest
from sqlalchemy import create_engine, make_url

from tests.downloads import FetchFailed, artifact

#: Release to its tarball and the schema version that it creates.
RELEASES = {
    "4.0.1": ("org.apache.hive:hive-standalone-metastore-server:4.0.1:tar.gz:bin", "4.0.0"),
    "3.1.3": ("org.apache.hive:hive-standalone-metastore:3.1.3:tar.gz:bin", "3.1.0"),
}


def load_hive_schema(url: str, release: str) -> None:
    """Runs the release's schema script in an empty database, like schematool."""
    _run(url, [hive_script(release, _name_of(url))])


def load_upgraded_schema(url: str, from_version: str) -> None:
    """Creates the schema of an older version (`1.2.0`, `3.1.0`) in an empty database and upgrades it to Hive 4.0's,
    like schematool."""
    name = _name_of(url)
    steps = script("4.0.1", name, f"upgrade.order.{name}").split()
    first = next(number for number, step in enumerate(steps) if step.startswith(f"{from_version}-to-"))
    wanted = [f"hive-schema-{from_version}.{name}.sql", *(f"upgrade-{step}.{name}.sql" for step in steps[first:])]
    _run(url, [script("4.0.1", name, each) for each in wanted])


def _name_of(url: str) -> str:
    return "mysql" if make_url(url).get_backend_name() == "mysql" else "postgres"


def _run(url: str, scripts: list[str]) -> None:
    is_mysql = _name_of(url) == "mysql"
    statements = [statement for text in scripts for statement in (_mysql_statements(text) if is_mysql else [text])]
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for statement in statements:
            # The driver itself: SQLAlchemy would treat a percent sign as a parameter.
            with connection.connection.cursor() as cursor:  # type: ignore[attr-defined]
                cursor.execute(statement)
    engine.dispose()


def hive_script(release: str, database: str) -> str:
    """The text of ``hive-schema-*.sql`` of a release for ``mysql`` or ``postgres``."""
    _, version = RELEASES[release]
    return script(release, database, f"hive-schema-{version}.{database}.sql")


@cache
def script(release: str, database: str, name: str) -> str:
    """The text of a file beside it."""
    wanted = f"/scripts/metastore/upgrade/{database}/{name}"
    with tarfile.open(_tarball(release)) as archive:
        for member in archive:
            if member.name.endswith(wanted):
                extracted = archive.extractfile(member)
                assert extracted is not None
                return extracted.read().decode()
    raise AssertionError(f"the distribution of Hive {release} holds no {wanted}")


def _mysql_statements(script: str) -> list[str]:
    without_comments = re.sub(r"^\s*--.*$", "", script, flags=re.MULTILINE)
    statements = [part.strip() for part in re.split(r";\s*$", without_comments, flags=re.MULTILINE)]
    return [statement for statement in statements if statement]


def _tarball(release: str) -> Path:
    """Returns the distribution, downloaded at its first use and kept in the user's cache folder."""
    try:
        return artifact(RELEASES[release][0])
    except FetchFailed as error:
        pytest.skip(str(error))
