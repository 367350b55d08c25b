"""Which differences between two replies are reported, and which are ignored."""

from __future__ import annotations

from typing import Any

import pytest

from hms_cache.app.shadow.comparing import Answer, Rules, differences, plain
from hms_cache.app.shadow.reads import is_compared
from hms_cache.app.shadow.report import MAX_NOTES, OTHER_NOTES, Report
from hms_cache.thrift_gen.hive_metastore.ttypes import FieldSchema, Partition, SkewedInfo, StorageDescriptor, Table


def value(content: Any, rules: Rules | None = None) -> Answer:
    return Answer("value", plain(content, rules or Rules()))


def paths(method: str, primary: Any, other: Any) -> list[str]:
    return [endpoint.path for endpoint in differences(method, value(primary), value(other))]


def test_equal_answers_have_no_difference() -> None:
    table = Table(tableName="t", dbName="d", parameters={"a": "1"})
    assert paths("get_table", table, Table(tableName="t", dbName="d", parameters={"a": "1"})) == []


def test_names_come_in_any_order() -> None:
    assert paths("get_all_tables", ["a", "b"], ["b", "a"]) == []


def test_columns_do_not() -> None:
    columns = [FieldSchema("a", "int", None), FieldSchema("b", "int", None)]
    assert paths("get_fields", columns, columns[::-1]) == [""]


def test_columns_within_a_table_do_not_either() -> None:
    columns = [FieldSchema("a", "int", None), FieldSchema("b", "int", None)]
    assert paths("get_table", Table(partitionKeys=columns), Table(partitionKeys=columns[::-1])) == ["partitionKeys"]


def test_partitions_are_paired_by_their_values() -> None:
    ours = [Partition(values=[str(number)], parameters={"n": "1"}) for number in range(4)]
    theirs = [Partition(values=[str(number)], parameters={"n": "1"}) for number in (3, 2, 0)]
    theirs[1].parameters = {"n": "2"}
    found = differences("get_partitions", value(ours), value(theirs))
    assert [(endpoint.path, endpoint.primary) for endpoint in found if endpoint.path.endswith(".n")] == [
        ('[["2"]].parameters.n', "1")
    ]
    assert [endpoint.other for endpoint in found if endpoint.path == '[["1"]]'] == ["absent"]
    assert len(found) == 2


def test_locations_of_skewed_values_are_compared() -> None:
    """By lists of values. A thread that compared a list of such partitions ended with an error."""

    def partition(location: str) -> Partition:
        skewed = SkewedInfo(["a", "b"], [["1", "2"]], {("1", "2"): location})
        return Partition(values=["1"], sd=StorageDescriptor(skewedInfo=skewed))

    assert paths("get_partitions", [partition("x")], [partition("x")]) == []
    [endpoint] = differences("get_partitions", value([partition("x")]), value([partition("y")]))
    assert endpoint.path.endswith('.skewedColValueLocationMaps.["1", "2"]')
    assert (endpoint.primary, endpoint.other) == ("x", "y")


def test_one_more_of_the_same_is_a_difference() -> None:
    assert paths("get_all_tables", ["a"], ["a", "a"]) == ["[a]"]


def test_releases_may_leave_defaults_out() -> None:
    assert paths("get_table", Table(tableName="t", retention=0, temporary=False), Table(tableName="t")) == []


def test_times_and_ids_count_when_asked_for() -> None:
    ours = Table(tableName="t", createTime=1, id=5, parameters={"transient_lastDdlTime": "1"})
    theirs = Table(tableName="t", createTime=2, id=6, parameters={"transient_lastDdlTime": "2"})
    assert differences("get_table", value(ours), value(theirs)) == []
    rules = Rules(compare_times=True, compare_ids=True)
    found = differences("get_table", value(ours, rules), value(theirs, rules))
    assert {endpoint.path for endpoint in found} == {"createTime", "id", "parameters.transient_lastDdlTime"}


@pytest.mark.parametrize(
    ("other", "is_different"),
    [
        (Answer("exception", "NoSuchObjectException", "other words"), False),
        (Answer("exception", "MetaException", "no such table"), True),
        (Answer("fault", 1, "no such table"), True),
        (Answer("value", None), True),
    ],
)
def test_the_class_of_an_exception_counts_and_its_words_do_not(other: Answer, is_different: bool) -> None:
    primary = Answer("exception", "NoSuchObjectException", "no such table")
    assert bool(differences("get_table", primary, other)) is is_different


def test_different_notes_are_kept_up_to_a_number() -> None:
    report = Report("a", "b")
    for number in [*range(2 * MAX_NOTES), 0, 0]:
        report.note(f"a frame of {number} bytes")
    notes = report.as_json()["notes"]
    assert len(notes) == MAX_NOTES + 1
    assert (notes["a frame of 0 bytes"], notes[OTHER_NOTES]) == (3, MAX_NOTES)


@pytest.mark.parametrize("method", ["get_token", "get_master_keys", "get_delegation_token"])
def test_secrets_are_not_compared(method: str) -> None:
    """With the keys that sign delegation tokens, anybody could be impersonated; a report contains differences."""
    assert differences(method, value(["key"]), value(["another"]))
    assert not is_compared(method)
