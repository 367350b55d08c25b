"""Which users may impersonate which others, and from where."""

from __future__ import annotations

from pathlib import Path

import pytest

from hms_cache.authentication.delegation.proxy_users import GroupsUnknownError, ProxyUsers
from hms_cache.config import load

GROUPS = {"ann": frozenset({"analysts"}), "bob": frozenset({"staff"})}

RULES = """
trino users=* hosts=10.0.0.0/8,192.168.1.7;
hive groups=analysts,admins hosts=*;
one users=ann hosts=localhost;
nowhere users=*;
nobody hosts=*;
"""


@pytest.mark.parametrize(
    ("real", "user", "address", "allowed"),
    [
        ("trino", "ann", "10.1.2.3", True),
        ("trino", "ann", "192.168.1.7", True),
        ("trino", "ann", "11.1.2.3", False),
        ("trino", "ann", "not an address", False),
        ("hive", "ann", "11.1.2.3", True),
        ("hive", "bob", "11.1.2.3", False),
        ("hive", "stranger", "11.1.2.3", False),
        ("one", "ann", "127.0.0.1", True),
        ("one", "bob", "127.0.0.1", False),
        ("nowhere", "ann", "127.0.0.1", False),
        ("nobody", "ann", "127.0.0.1", False),
        ("ann", "bob", "127.0.0.1", False),
    ],
)
def test_what_is_not_allowed_is_refused(real: str, user: str, address: str, allowed: bool) -> None:
    rules = ProxyUsers(RULES, lambda name: GROUPS.get(name, frozenset()))
    assert (rules.refusal(real, user, address) is None) == allowed


def test_groups_are_asked_for_only_where_they_decide() -> None:
    def silent(user: str) -> frozenset[str]:
        raise GroupsUnknownError

    rules = ProxyUsers(
        "hive groups=analysts hosts=*; a users=ann groups=g hosts=*; b groups=* hosts=*; c hosts=*", silent
    )
    assert rules.refusal("hive", "ann", "::1") == (
        "User: hive is not allowed to impersonate ann: its groups are not known now; retry"
    )
    assert rules.refusal("a", "ann", "::1") is None and rules.refusal("b", "ann", "::1") is None
    assert rules.refusal("c", "ann", "::1") == "User: c is not allowed to impersonate ann"


@pytest.mark.parametrize(
    "text", ["trino users", "trino user=*", "trino users=* users=a", "a users=*; a users=b", "a hosts=1/99"]
)
def test_what_is_no_rule_stops_the_start(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        ProxyUsers(text, lambda name: frozenset())


def test_a_site_files_rules(tmp_path: Path) -> None:
    site = tmp_path / "core-site.xml"
    properties = {
        "hadoop.proxyuser.trino.users": "*",
        "hadoop.proxyuser.trino.hosts": "10.0.0.0/8, 192.168.1.7",
        "hadoop.proxyuser.hive.groups": "analysts,\n admins",
        "hadoop.proxyuser.hive.hosts": "*",
    }
    entries = "".join(f"<property><name>{k}</name><value>{v}</value></property>" for k, v in properties.items())
    site.write_text(f"<configuration>{entries}</configuration>")
    text = load(site_files=(site,), environment={}).settings.authentication.proxy_users
    assert text == "hive groups=analysts,admins hosts=*; trino hosts=10.0.0.0/8,192.168.1.7 users=*"
    assert ProxyUsers(text, GROUPS.__getitem__).refusal("hive", "ann", "10.0.0.1") is None
