"""Our IDL compared with each release's own classes, field by field."""

from __future__ import annotations

import json
from functools import cache

import hive_metastore.constants
import hive_metastore.ThriftHiveMetastore
import hive_metastore.ttypes
import hmsclient.genthrift.fb303.FacebookService
import hmsclient.genthrift.fb303.ttypes
import hmsclient.genthrift.hive_metastore.constants
import hmsclient.genthrift.hive_metastore.ThriftHiveMetastore
import hmsclient.genthrift.hive_metastore.ttypes
import pytest

from hms_cache.thrift_gen.fb303 import FacebookService
from hms_cache.thrift_gen.fb303 import ttypes as fb303_types
from hms_cache.thrift_gen.hive_metastore import ThriftHiveMetastore, constants, ttypes
from tests.protocol.collisions import COLLISIONS, HIVE_2_3, NEWER_ENUM_VALUES, NEWER_FIELDS, NEWER_STRUCTS, OWN_FIELDS
from tests.protocol.facts import ProtocolFacts, java_facts, python_facts
from tests.protocol.releases import EACH_RELEASE, RELEASES, run_java

OURS = python_facts("ours", (ttypes, ThriftHiveMetastore, constants))
FB303 = python_facts("ours", (fb303_types, FacebookService))


@cache
def released(release: str) -> ProtocolFacts:
    return java_facts(release, json.loads(run_java("ThriftFacts.java", release)))


def hmsclient_facts() -> ProtocolFacts:
    package = hmsclient.genthrift.hive_metastore
    return python_facts(HIVE_2_3, (package.ttypes, package.ThriftHiveMetastore, package.constants))


def pyiceberg_facts() -> ProtocolFacts:
    modules = (hive_metastore.ttypes, hive_metastore.ThriftHiveMetastore, hive_metastore.constants)
    return python_facts("4.0.0", modules)  # Hive master of 2023-09, before 4.0.0


def excused(family: str, struct: str, field_id: int) -> bool:
    return any(
        family.startswith(release or "") and (name, number) == (struct, field_id)
        for release, name, number in COLLISIONS
    )


def differences(theirs: ProtocolFacts) -> list[str]:
    """What `theirs` contains and ours lacks or has differently."""
    found = []
    for struct, fields in theirs.structs.items():
        if struct not in OURS.structs:
            if struct not in FB303.structs:
                found.append(f"{struct}: missing")
            continue
        for number, fact in fields.items():
            our = OURS.structs[struct].get(number)
            if our != fact and not excused(theirs.source, struct, number):
                found.append(f"{struct}.{number}: {fact} there, {our} here")
    for name, values in theirs.enums.items():
        if name in FB303.enums:
            continue
        for label, value in values.items():
            if OURS.enums.get(name, {}).get(label) != value:
                found.append(f"{name}.{label}: {value} there")
    for name, value in theirs.constants.items():
        if OURS.constants.get(name) != value:
            found.append(f"{name}: {value!r} there, {OURS.constants.get(name)!r} here")
    for method in theirs.methods - FB303.methods:
        if theirs.is_oneway(method) != OURS.is_oneway(method):
            found.append(f"{method}: one-way on one side")
    return found


def test_all_methods_are_there() -> None:
    assert len(OURS.methods) == 298
    assert len(FB303.methods) == 13


def test_hmsclient_speaks_a_part_of_it() -> None:
    theirs = hmsclient_facts()
    assert len(theirs.methods) == 153
    assert differences(theirs) == []


def test_pyiceberg_speaks_a_part_of_it() -> None:
    theirs = pyiceberg_facts()
    assert len(theirs.methods) == 270
    assert differences(theirs) == []


def test_fb303_is_that_of_hmsclient() -> None:
    package = hmsclient.genthrift.fb303
    theirs = python_facts("fb303", (package.ttypes, package.FacebookService))
    assert theirs.enums == FB303.enums
    assert theirs.structs == FB303.structs


@pytest.mark.java
@pytest.mark.parametrize("release", EACH_RELEASE)
def test_a_release_speaks_a_part_of_it(release: str) -> None:
    theirs = released(release)
    expected = {"2.3.10": 154, "3.1.3": 207, "4.0.0": 276}
    assert len(theirs.methods) == expected.get(release, len(theirs.methods)) >= 154
    assert differences(theirs) == []


@pytest.mark.java
@pytest.mark.soak
def test_nothing_is_there_that_no_release_has() -> None:
    releases = [released(release) for release in RELEASES]
    structs = {name for release in releases for name in release.structs}
    assert OURS.structs.keys() - structs == NEWER_STRUCTS
    fields = {(name, number) for release in releases for name, known in release.structs.items() for number in known}
    ours = {(name, number) for name, known in OURS.structs.items() if name in structs for number in known}
    assert ours - fields == NEWER_FIELDS | OWN_FIELDS
    values = {(name, label) for release in releases for name, known in release.enums.items() for label in known}
    assert {(name, label) for name, known in OURS.enums.items() for label in known} - values == NEWER_ENUM_VALUES


@pytest.mark.java
@pytest.mark.soak
def test_every_collision_is_a_real_one() -> None:
    """An entry of the table that applies to nothing would hide a later mistake."""
    idle = set(COLLISIONS)
    for theirs in [hmsclient_facts(), pyiceberg_facts(), *map(released, RELEASES)]:
        for family, struct, number in COLLISIONS:
            fact = theirs.structs.get(struct, {}).get(number)
            if theirs.source.startswith(family or "") and fact not in (None, OURS.structs[struct].get(number)):
                idle.discard((family, struct, number))
    assert not idle


def test_the_comparison_notices_a_difference() -> None:
    theirs = pyiceberg_facts()
    table = dict(theirs.structs["Table"])
    table[7], table[8] = table[8], table[7]
    del theirs.structs["Table"]
    theirs.structs["Table"] = table
    theirs.enums["LockType"] = {"EXCLUSIVE": 9}
    assert [line.split(":")[0] for line in differences(theirs)] == ["Table.7", "Table.8", "LockType.EXCLUSIVE"]
