"""Which users of a real OpenLDAP directory are accepted: Hive's lists, searches and query, and names made to escape
them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hms_cache.app.security.authentication import directory_options
from hms_cache.authentication.directory import Directory, DirectoryOptions
from hms_cache.authentication.directory_filters import FilterOptions, filled, first_value, is_below
from hms_cache.authentication.mechanism import AuthenticationError
from hms_cache.config import load
from hms_cache.errors import ConfigurationError, StartupError
from tests.server.conftest import Serve, request_bytes
from tests.server.test_ldap import client, running_directory, settings_of
from tests.server.test_tls import Authority

pytest.importorskip("ldap3")

BASE = "dc=example,dc=test"
PEOPLE, STAFF, GROUPS = f"ou=people,{BASE}", f"ou=staff,{BASE}", f"ou=groups,{BASE}"
MANY = f"ou=many,{BASE}"
ACCOUNT = f"uid=reader,ou=services,{BASE}"
USERS = ("ann", "bob", "carol", "o,brien", "a*", "x)(uid=*")


def password(user: str) -> str:
    return f"of {user}"


def entry(dn: str, *lines: str) -> str:
    return "\n".join((f"dn: {dn}", *lines)) + "\n\n"


def person(user: str, dn: str, *lines: str, secret: str = "") -> str:
    given = (f"uid: {user}", f"cn: {user}", f"sn: {user}", f"userPassword: {secret or password(user)}")
    return entry(dn, "objectClass: inetOrgPerson", *given, *lines)


def dn_of(user: str) -> str:
    return f"uid={user.replace(',', chr(92) + '2C')},{PEOPLE}"


ENTRIES = "".join(
    (
        entry(BASE, "objectClass: domain", "dc: example"),
        *(entry(f"ou={ou},{BASE}", "objectClass: organizationalUnit", f"ou: {ou}") for ou in ("people", "staff")),
        *(entry(f"ou={ou},{BASE}", "objectClass: organizationalUnit", f"ou: {ou}") for ou in ("groups", "services")),
        entry(f"ou=old,{GROUPS}", "objectClass: organizationalUnit", "ou: old"),
        person("reader", ACCOUNT),
        *(
            person(user, dn_of(user), *more)
            for user, more in zip(
                USERS,
                (
                    ("l: Paris", f"seeAlso: cn=analysts,{GROUPS}"),
                    ("l: Rome", f"seeAlso: cn=writers,{GROUPS}"),
                    ("l: Paris",),
                    (),
                    (),
                    (),
                ),
                strict=True,
            )
        ),
        # Another user of the same name, with a different password, who is in no group.
        person("ann", f"uid=ann,{STAFF}", secret="the other"),
        entry(f"cn=analysts,{GROUPS}", "objectClass: groupOfNames", "objectClass: uidObject", "uid: analysts")[:-1]
        + f"member: {dn_of('ann')}\nmember: {dn_of('o,brien')}\n\n",
        entry(f"cn=writers,{GROUPS}", "objectClass: groupOfNames", f"member: {dn_of('bob')}"),
        entry(f"cn=twice,{GROUPS}", "objectClass: groupOfNames", "objectClass: uidObject", "uid: twice")[:-1]
        + f"member: {dn_of('carol')}\n\n",
        entry(f"cn=other,{GROUPS}", "objectClass: groupOfNames", "objectClass: uidObject", "uid: twice")[:-1]
        + f"member: {dn_of('carol')}\n\n",
        entry(f"cn=posix,{GROUPS}", "objectClass: posixGroup", "gidNumber: 7", "memberUid: bob", "memberUid: a*"),
        entry(MANY, "objectClass: organizationalUnit", "ou: many"),
        *(
            entry(f"cn=many{n},{MANY}", "objectClass: posixGroup", f"gidNumber: {n}", "memberUid: carol")
            for n in range(1, 8)
        ),
        # With the name of an accepted group, outside of the searched groups.
        entry(f"cn=analysts,{STAFF}", "objectClass: groupOfNames", f"member: {dn_of('carol')}"),
    )
)


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Each bound user may search; but the account gets no more than 6 entries at once."""
    with running_directory(
        tmp_path_factory.mktemp("directory"), ENTRIES, f'limits dn.exact="{ACCOUNT}" size.soft=6 size.hard=6\n'
    ) as running:
        yield running


def options(port: int, *, by_account: bool = False, **settings: str) -> DirectoryOptions:
    """As the program builds them from its settings."""
    given = {
        "authentication.plain": "ldap",
        "authentication.ldap_url": f"ldap://127.0.0.1:{port}",
        "authentication.ldap_user_dn_pattern": f"uid=%s,{PEOPLE}",
        **({"authentication.ldap_bind_dn": ACCOUNT} if by_account else {}),
        **({"authentication.ldap_bind_password": password("reader")} if by_account else {}),
    }
    given |= {f"authentication.{name}": value for name, value in settings.items()}
    return directory_options(load(command_line=given, environment={}).settings.authentication)


def let_in(made: DirectoryOptions) -> set[str]:
    return {user for user in USERS if outcome(made, user, password(user)) is None}


def outcome(made: DirectoryOptions, user: str, secret: str) -> str | None:
    try:
        Directory(made).check(user, secret)
    except AuthenticationError as error:
        return error.outcome
    return None


GROUP = {"ldap_group_dn_pattern": f"cn=%s,{GROUPS}"}
FILTERS: list[tuple[dict[str, str], set[str]]] = [
    ({}, set(USERS)),
    ({"ldap_user_filter": "ANN,Carol,reader"}, {"ann", "carol"}),
    ({**GROUP, "ldap_group_filter": "Analysts"}, {"ann", "o,brien"}),
    ({**GROUP, "ldap_group_filter": "analysts,writers", "ldap_user_filter": "bob,carol,ann"}, {"ann", "bob"}),
    ({"ldap_base_dn": BASE, "ldap_group_filter": "analysts"}, {"ann", "o,brien", "carol"}),
    ({"ldap_group_dn_pattern": f"cn=%s,ou=old,{GROUPS}", "ldap_group_filter": "analysts"}, set()),
    (
        {
            **GROUP,
            "ldap_group_filter": "posix",
            "ldap_group_class_key": "posixGroup",
            "ldap_group_membership_key": "memberUid",
        },
        {"bob", "a*"},
    ),
    # By an attribute of users; the group's name is the directory's `uid`, as in guidKey; an ambiguous one matches
    # nobody.
    ({**GROUP, "ldap_group_filter": "analysts,twice,none", "ldap_user_membership_key": "seeAlso"}, {"ann"}),
    ({"ldap_base_dn": BASE, "ldap_custom_query": "(&(objectClass=person)(l=Paris))"}, {"ann", "carol"}),
    ({"ldap_base_dn": BASE, "ldap_custom_query": "(|(cn=writers)(cn=bob)(cn=nobody))"}, {"bob"}),
    ({"ldap_base_dn": GROUPS, "ldap_custom_query": "(|(cn=analysts)(l=Paris))"}, {"ann", "o,brien"}),
    ({"ldap_base_dn": BASE, "ldap_user_search_filter": "(&(l=Paris)(uid={0}))"}, {"ann", "carol"}),
    (
        {"ldap_group_base_dn": GROUPS, "ldap_group_search_filter": "(|(&(cn=writers)(member={1}))(memberUid={0}))"},
        {"bob", "a*"},
    ),
    (
        {
            "ldap_base_dn": BASE,
            "ldap_user_search_filter": "(uid={0})",
            "ldap_group_base_dn": f"ou=old,{GROUPS}",
            "ldap_group_search_filter": "(member={1})",
        },
        set(),
    ),
]


@pytest.mark.parametrize("by_account", [False, True])
@pytest.mark.parametrize(("settings", "expected"), FILTERS, ids=[",".join(given)[:60] for given, _ in FILTERS])
def test_filters_let_in_whom_they_name(
    port: int, settings: dict[str, str], expected: set[str], by_account: bool
) -> None:
    made = options(port, by_account=by_account, **settings)
    # With an account, a search for `ann` below the base finds two: it is unknown which of them is meant.
    if by_account and "ldap_user_search_filter" in settings and "(l=Paris)" not in settings["ldap_user_search_filter"]:
        expected = expected - {"ann"}
    assert let_in(made) == expected
    for user in ("ann", "bob"):
        assert outcome(made, user, "wrong") == "refused"
        assert outcome(made, user, "") == "refused"
        assert outcome(made, user, password("reader")) == "refused"


BREAKING = (
    *(
        "*",
        "a*n",
        "(",
        ")",
        "ann)",
        "ann)(uid=*",
        "*)(uid=*))(|(uid=*",
        "ann)(|(l=*)",
        "ann\0",
        "ann\\",
        "\\2a",
        "ann*",
    ),
    *("{0}", "{1}", "ann{1}", f"ann,{PEOPLE}", f"uid=ann,{PEOPLE}", "ann+cn=ann", "%s", "ann#", '"ann"', "nobody", " "),
    *("\u0000", "\uff0a", "ann)(objectClass=*))%00", "x" * 1000),
)


@pytest.mark.parametrize("by_account", [False, True])
def test_names_do_not_become_syntax(port: int, by_account: bool) -> None:
    """Each name with the password of each user: none is accepted, by any of the filters."""
    for settings, _ in FILTERS[::2]:
        made = options(port, by_account=by_account, **settings)
        for user, secret in itertools.product(BREAKING, ("ann", "a*", "reader")):
            found = outcome(made, user, password(secret))
            assert found == "refused", (user, settings)
    # Such a user may exist: the name finds only this user.
    made = options(port, by_account=by_account, **FILTERS[6][0])
    assert outcome(made, "a*", password("a*")) is None
    assert outcome(made, "a*", password("ann")) == "refused"


def test_another_user_of_the_same_name_is_another_user(port: int) -> None:
    """Binding as one of them does not give the groups of the other."""
    both = f"uid=%s,{PEOPLE}:uid=%s,{STAFF}"
    made = options(port, ldap_user_dn_pattern=both)
    assert outcome(made, "ann", "the other") is None and outcome(made, "ann", password("ann")) is None
    for settings, expected in FILTERS[2:]:
        made = options(port, **{**settings, "ldap_user_dn_pattern": both})
        assert outcome(made, "ann", "the other") == ("refused"), settings
        assert (outcome(made, "ann", password("ann")) is None) == ("ann" in expected), settings


def test_what_the_directory_does_not_say_lets_nobody_in(port: int) -> None:
    posix = FilterOptions(
        groups=frozenset({"many1"}), group_bases=(MANY,), group_class="posixGroup", group_key="memberUid"
    )
    own = DirectoryOptions((f"ldap://127.0.0.1:{port}",), name_patterns=(f"uid=%s,{PEOPLE}",), base=BASE, filters=posix)
    account = replace(own, account=ACCOUNT, account_password=password("reader"))

    def carol(made: DirectoryOptions) -> str | None:
        return outcome(made, "carol", password("carol"))

    assert carol(own) is None
    assert carol(account) == "unavailable", (
        "more groups than the account is shown: what is missing could be what decides"
    )
    assert carol(replace(own, filters=replace(posix, group_class="*"))) == "refused", "a class is no pattern"
    assert carol(replace(own, filters=replace(posix, group_bases=(f"ou=gone,{BASE}",)))) == "refused"
    assert carol(replace(account, account_password="wrong")) == "unavailable"
    assert carol(replace(account, name_patterns=(f"cn=fixed,ou=%s,{PEOPLE}",))) == "unavailable"
    assert carol(replace(own, urls=("ldap://127.0.0.1:1",))) == "unavailable"
    broken = FilterOptions(group_search="(objectClass=", group_search_base=BASE)
    assert carol(replace(own, filters=broken)) == "unavailable"
    assert carol(replace(own, urls=("ldap://127.0.0.1:1", *own.urls))) is None


SITE = {
    "metastore.authentication": "LDAP",
    "metastore.authentication.ldap.userDNPattern": f"uid=%s,{PEOPLE}",
    "hive.metastore.authentication.ldap.groupDNPattern": f"cn=%s,{GROUPS}",
    "metastore.authentication.ldap.groupFilter": "analysts,writers",
    "metastore.authentication.ldap.groupMembershipKey": "member",
    "hive.metastore.authentication.ldap.groupClassKey": "groupOfNames",
    "metastore.authentication.ldap.userFilter": "ann,carol",
    "metastore.authentication.ldap.binddn": ACCOUNT,
    "metastore.authentication.ldap.bindpw": password("reader"),
}


def test_hives_keys_and_a_server(serve: Serve, port: int, tmp_path: Path) -> None:
    site = tmp_path / "hive-site.xml"
    keys = {**SITE, "metastore.authentication.ldap.url": f"ldap://127.0.0.1:{port}"}
    rows = "".join(f"<property><name>{name}</name><value>{value}</value></property>" for name, value in keys.items())
    site.write_text(f"<configuration>{rows}</configuration>")
    configuration = load(site_files=[site], environment={}, command_line={"security.accept_insecure": True})
    assert not configuration.site_review.insecure and not configuration.site_review.ignored
    assert let_in(directory_options(configuration.settings.authentication)) == {"ann"}
    authority = Authority(tmp_path)
    filters = {
        "authentication.ldap_group_filter": "analysts",
        "authentication.ldap_group_dn_pattern": f"cn=%s,{GROUPS}",
    }
    more: dict[str, Any] = {"authentication.ldap_user_dn_pattern": f"uid=%s,{PEOPLE}", **filters}
    server = serve(**settings_of(port, authority, **more))
    refused = client(server, authority)
    assert refused.plain("bob", password("bob"))[0] == 4
    admitted = client(server, authority)
    assert admitted.plain("o,brien", password("o,brien")) == (5, b"")
    admitted.sendall(request_bytes("getStatus", 1))
    assert b"getStatus" in admitted.recv(100)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"ldap_user_filter": "a", "ldap_base_dn": "d", "ldap_custom_query": "(uid=a)"}, "use only one kind of filter"),
        ({"ldap_bind_dn": "a"}, "must be set together"),
        ({"ldap_group_filter": "g"}, "these filters need ldap_base_dn"),
        ({"ldap_custom_query": "(uid=a)"}, "these filters need ldap_base_dn"),
        ({"ldap_base_dn": "d", "ldap_user_search_filter": "(uid=a)"}, r"needs \{0\}"),
        ({"ldap_group_base_dn": "d", "ldap_group_search_filter": "(cn=a)"}, r"needs \{0\} or"),
        ({"ldap_group_search_filter": "(cn={0})"}, "ldap_group_base_dn"),
        ({**GROUP, "ldap_domain": "x", "ldap_group_filter": "g"}, "to find the distinguished name"),
    ],
)
def test_filters_that_would_not_filter_stop_the_start(settings: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        options(1, **settings)


def test_what_is_no_filter_stops_the_start() -> None:
    for bad in ("(uid={0}", "uid", "(&(uid={0})"):
        with pytest.raises(StartupError, match="no filter of LDAP"):
            options(1, ldap_base_dn="dc=x", ldap_user_search_filter=bad if "{0}" in bad else bad + "{0}")


def test_distinguished_names_are_compared_by_their_parts() -> None:
    assert first_value(r"CN=Ana\2C Lysts,ou=x") == first_value(r"cn = Ana\, Lysts , ou=x") == "Ana, Lysts"
    assert first_value(r"cn=\c3\a9t\C3\A9,dc=x") == "été"
    assert is_below("uid=a,OU=People, dc=x", "ou=people,DC=x") and is_below("dc=x", "dc=x")
    for name, base in (
        ("uid=a\\,dc=x", "dc=x"),
        ("dc=x", "uid=a,dc=x"),
        ("uid=a,dc=xx", "dc=x"),
        ("a", ""),
        ("", "dc=x"),
    ):
        assert not is_below(name, base), (name, base)
    assert filled("(&(a={0})(b={1}))", "{1}*", "x=({0}") == r"(&(a={1}\2a)(b=x=\28{0}))"
