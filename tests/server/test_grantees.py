"""Reads of partitions reveal only the user's own grants and roles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from thrift.Thrift import TType

from hms_cache.server.authorization.grantees import GRANTEES
from hms_cache.thrift_gen.hive_metastore import ttypes as t
from hms_cache.wire import METHODS
from tests.server.conftest import Link, Serve, table
from tests.server.test_authorization import World


@pytest.fixture
def world(serve: Serve, tmp_path: Path) -> World:
    made = World(serve, tmp_path / "policy.toml")
    root, user = made.root, t.PrincipalType.USER
    one = table("open", "pub_parted")
    one.partitionKeys = [t.FieldSchema("p", "string", None)]
    one.parameters = {"PARTITION_LEVEL_PRIVILEGE": "TRUE"}
    root.call("create_table", tbl=one)
    root.call("add_partition", new_part=t.Partition(["1"], "open", "pub_parted", 0, 0, one.sd))
    root.call("create_role", role=t.Role("auditors", 0, "root"))
    grant = {"role_name": "auditors", "principal_name": "victim", "principal_type": user}
    root.call("grant_role", **grant, grantor="root", grantorType=user)
    return made


def privileges(link: Link, user: str | None, groups: list[str] | None) -> list[t.PrincipalPrivilegeSet | None]:
    """Of the partition, by each method that returns them."""
    at = {"db_name": "open", "tbl_name": "pub_parted"}
    who = {"user_name": user, "group_names": groups}
    of_request = {"dbName": "open", "tblName": "pub_parted", "userName": user, "groupNames": groups}
    specs = t.GetPartitionsRequest(dbName="open", tblName="pub_parted", withAuth=True, user=user, groupNames=groups)
    specs.projectionSpec, specs.filterSpec = t.GetProjectionsSpec(), t.GetPartitionsFilterSpec()
    [spec] = link.call("get_partitions_with_specs", request=specs).partitionSpec
    found = [
        link.call("get_partition_with_auth", **at, part_vals=["1"], **who),
        *link.call("get_partitions_ps_with_auth", **at, part_vals=["1"], max_parts=-1, **who),
        *link.call("get_partitions_ps_with_auth_req", req=t.GetPartitionsPsWithAuthRequest(**of_request)).partitions,
        *link.call("get_partitions_with_auth", **at, max_parts=-1, **who),
        *spec.sharedSDPartitionSpec.partitions,
    ]
    assert len(found) == len(GRANTEES)
    return [one.privileges for one in found]


def test_grants_and_roles_of_others_are_told_to_administrators(world: World) -> None:
    ann, root = world.link("ann"), world.root
    for who in (("victim", None), ("victim", ["g"]), ("", ["g"])):
        assert privileges(ann, *who) == [None] * len(GRANTEES), who
    for own in (("ann", None), ("ann", ["g"])):
        for shown in privileges(ann, *own):
            assert shown is not None and shown.groupPrivileges is None, own
            assert list(shown.userPrivileges) == ["ann"] and list(shown.rolePrivileges) == ["public"]
    for shown in privileges(root, "victim", ["g"]):
        assert shown is not None and sorted(shown.rolePrivileges) == ["auditors", "public"]
        assert list(shown.groupPrivileges) == ["g"]


def test_an_answer_without_somebodys_grants_is_not_kept_for_who_may_know_them(world: World) -> None:
    """Users of one class share cached answers, and the request that names bob has the same bytes from each of them."""
    ann, bob = world.link("ann"), world.link("bob")
    for groups in (None, ["g"]):
        for _ in range(3):
            assert privileges(ann, "bob", groups) == [None] * len(GRANTEES)
        for _ in range(3):
            for shown in privileges(bob, "bob", groups):
                assert shown is not None and list(shown.userPrivileges) == ["bob"]
        assert privileges(ann, "bob", groups) == [None] * len(GRANTEES)


def test_every_read_that_names_a_user_is_looked_at() -> None:
    """By the fields of the protocol: reads of partitions with a user and groups."""
    found = set()
    for method, spec in METHODS.items():
        structs: list[Any] = [spec.args_class]
        structs += [field[3][0] for field in filter(None, structs[0].thrift_spec) if field[1] == TType.STRUCT]
        names = {field[2] for struct in structs for field in filter(None, struct.thrift_spec)}
        if "partition" in method and names & {"group_names", "groupNames"}:
            found.add(method)
    assert found == set(GRANTEES)
