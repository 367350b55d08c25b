"""Leases in `/status`, `/leases` and `hms-cache status`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from hms_cache.cli.main import commands
from hms_cache.store.members import members
from tests.admin.running import Running
from tests.lease.member import wait_until

pytestmark = pytest.mark.soak


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    one = Running(tmp_path, cache__exactness="lease", lease__secret="sixteen letters.", lease__length_s=0.3)
    yield one
    one.close()


def test_members_acknowledgements_and_reasons_are_shown(running: Running) -> None:
    wait_until(lambda: running.json("/status")["lease"]["held"])
    membership = running.service.membership
    assert membership is not None
    shown = running.json("/leases")
    assert (shown["exactness"], shown["lease"]["held"], shown["lease"]["alarm"]) == ("lease", True, "")
    (member,) = shown["lease"]["members"]
    assert (member["member"], member["state"], member["lease_s"]) == (membership.member, "lease", 0.3)
    assert "first member" in shown["lease"]["reasons"][-1]["reason"]
    epoch = membership.state.epoch
    assert epoch is not None
    members.revoke(membership._database, membership.member, epoch)
    wait_until(lambda: any("received nothing" in one["reason"] for one in running.json("/leases")["lease"]["reasons"]))
    wait_until(lambda: running.json("/status")["lease"]["held"])
    assert "received nothing" in running.json("/leases")["lease"]["reasons"][0]["reason"]
    status, html = running.ask("/leases?format=html")
    assert status == 200 and membership.member in html and "received nothing" in html

    assert running.service.management_address is not None
    host, port = running.service.management_address
    told = CliRunner().invoke(commands, ["status", "--management", f"http://{host}:{port}"])
    assert told.exit_code == 0, told.output
    assert f"{membership.address:<28} this server, lease" in told.output and "received nothing" in told.output


def test_without_leases_the_page_says_so(tmp_path: Path) -> None:
    one = Running(tmp_path)
    try:
        shown = one.json("/leases")
        assert (shown["exactness"], shown["lease"], shown["waits"]) == ("check", None, 0)
        assert one.json("/status")["lease"] is None
    finally:
        one.close()
