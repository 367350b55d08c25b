"""A reload applies all of its files, or none: if the log says that it was not reloaded, nothing has changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hms_cache.app.service import Service
from hms_cache.errors import StartupError
from tests.server.conftest import Serve
from tests.server.test_tls import Authority

TOKEN = "0123456789abcdef"
POLICY = '[[grants]]\nusers = ["{user}"]\nactions = ["read"]\ndatabases = ["*"]\n'


def in_force(service: Service) -> list[Any]:
    """What each of the files has brought."""
    assert service._policy is not None and service._listener_tokens is not None
    assert service._ports is not None and service._ports.ports[0].tls is not None
    assert service.management is not None and service.management.tls is not None
    contexts = service._ports.ports[0].tls.context, service.management.tls.context
    return [service._policy.policy, service._listener_tokens.user_of(TOKEN), *contexts]


@pytest.mark.parametrize("bad", ["policy", "tokens", "certificate"])
def test_a_file_that_cannot_be_used_keeps_the_others_out(bad: str, serve: Serve, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    good = {
        "policy": (tmp_path / "policy", [POLICY.format(user=user).encode() for user in ("ann", "bob")]),
        "tokens": (tmp_path / "tokens", [f"{user} {TOKEN}\n".encode() for user in ("ann", "bob")]),
        "certificate": (authority.server_file, [authority.server_file.read_bytes()] * 2),
    }
    for path, (first, _) in good.values():
        path.write_bytes(first)
    service = serve(
        **{
            "authorization.provider": "policy",
            "authorization.policy_file": str(tmp_path / "policy"),
            "authorization.policy_check_interval_s": 3600,
            "security.accept_insecure": True,
            "admin.listener_tokens_file": str(tmp_path / "tokens"),
            "admin.tls_enabled": True,
            **authority.settings(),
        }
    ).service
    before = in_force(service)
    for path, (_, second) in good.values():
        path.write_bytes(second)
    good[bad][0].write_text("nonsense\n")
    with pytest.raises(StartupError):
        service.reload(service._configuration)
    assert in_force(service) == before
    good[bad][0].write_bytes(good[bad][1][1])
    service.reload(service._configuration)
    assert all(one != other for one, other in zip(in_force(service), before, strict=True))
