"""Random partitions and random changes compared with a model in a dict, on each database."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hms_cache.metadata.object_names import TableName
from hms_cache.metadata.partition_names import make_partition_name
from hms_cache.store.contract.environment import Writer, environment_options
from hms_cache.store.contract.partitions import (
    AllPartitions,
    ByFilter,
    ByNames,
    ByPartialValues,
    ByValues,
    PartitionQuery,
    PartitionSelection,
)
from hms_cache.store.engine.database import Database
from hms_cache.thrift_gen.hive_metastore.ttypes import AlreadyExistsException, EnvironmentContext, NoSuchObjectException
from tests.store.partitions.catalog import PartitionCatalog, partition

KEYS = (("k", "string"), ("n", "int"))
KEEP_STATISTICS = environment_options(EnvironmentContext({"DO_NOT_UPDATE_STATS": "true"}))
TABLES = itertools.count()

# MySQL's character sets treat some different texts as equal; without trailing blanks and characters beyond the basic
# plane, the databases agree about which names are equal.
texts = st.one_of(
    st.sampled_from(
        ["a", "b", "A", "é", "日", "a/b", "x=y", "%41", "a b", "__HIVE_DEFAULT_PARTITION__", "z'\"", "!", "_"]
    ),
    st.text(
        st.characters(min_codepoint=0x20, max_codepoint=0xFFFF, exclude_categories=["Cs", "Cn", "Zs"]),
        min_size=1,
        max_size=5,
    ),
)
numbers = st.sampled_from(["0", "1", "2", "10", "-3", "007", "999999999"])
values = st.tuples(texts, numbers)
parameters = st.dictionaries(
    st.text(st.characters(codec="ascii", min_codepoint=1), min_size=1, max_size=4).filter(
        lambda key: key.strip() == key and key != "transient_lastDdlTime"
    ),
    st.text(st.characters(min_codepoint=1, max_codepoint=0xFFFF, exclude_categories=["Cs"]), max_size=6),
    max_size=4,
)


@pytest.fixture(scope="module", params=["sqlite", "mariadb", "postgresql"])
def shared(request: pytest.FixtureRequest, database_servers: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A catalog that the examples of a test share, each with a table of its own."""
    server = database_servers(request.param)
    url = server.initialized_database()
    database = Database(url)
    yield PartitionCatalog(database, Path(tmp_path_factory.mktemp("model")), files="leave")
    database.close()
    server.give_back(url)


def name_of(row: tuple[str, ...]) -> str:
    return make_partition_name(["k", "n"], row)


class Model:
    """A table of the catalog, and its expected contents."""

    def __init__(self, catalog: PartitionCatalog) -> None:
        self.catalog = catalog
        self.table = f"t{next(TABLES)}"
        catalog.create_table(self.table, keys=KEYS)
        self.names = ("hive", "d", self.table)
        self.partitions: dict[tuple[str, ...], dict[str, str]] = {}

    def new(self, row: tuple[str, ...], own: dict[str, str]) -> Any:
        return partition(*row, table=self.table, parameters={**own, "transient_lastDdlTime": "5"})

    def check(self) -> None:
        found = self.catalog.reads.get_partitions(PartitionQuery(TableName(*self.names))).partitions
        expected = sorted(self.partitions, key=name_of)
        assert [tuple(one.values) for one in found] == expected
        for one in found:
            own = {**self.partitions[tuple(one.values)], "transient_lastDdlTime": "5"}
            assert one.parameters == own
            assert list(one.parameters) == sorted(own)
        assert self.selected(AllPartitions()) == [name_of(row) for row in expected]

    def selected(self, selection: PartitionSelection, max_parts: int = -1) -> list[str]:
        return self.catalog.reads.get_partition_names(PartitionQuery(TableName(*self.names), selection, max_parts))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_changes_agree_with_the_model(shared: PartitionCatalog, data: st.DataObject) -> None:
    model = Model(shared)
    for _ in range(data.draw(st.integers(1, 6))):
        action = data.draw(st.sampled_from(["add", "add_if_absent", "alter", "drop", "rename"]))
        known = sorted(model.partitions)
        if action in ("add", "add_if_absent"):
            rows = data.draw(st.dictionaries(values, parameters, min_size=1, max_size=5))
            rows = {
                row: own
                for index, (row, own) in enumerate(rows.items())
                if name_of(row) not in {name_of(r) for r in list(rows)[:index]}
            }
            new = [model.new(row, own) for row, own in rows.items()]
            clash = [row for row in rows if name_of(row) in {name_of(other) for other in known}]
            if clash and action == "add":
                with pytest.raises(AlreadyExistsException):
                    shared.writes.add_partitions(TableName(*model.names), new)
            else:
                shared.writes.add_partitions(TableName(*model.names), new, if_not_exists=True)
                model.partitions.update({row: own for row, own in rows.items() if row not in clash})
        elif action == "alter" and known:
            chosen = data.draw(st.lists(st.sampled_from(known), min_size=1, unique=True))
            changes = {row: data.draw(parameters) for row in chosen}
            shared.writes.alter_partitions(
                TableName(*model.names),
                [model.new(row, own) for row, own in changes.items()],
                writer=Writer(options=KEEP_STATISTICS),
            )
            model.partitions.update(changes)
        elif action == "drop" and known:
            chosen = data.draw(st.lists(st.sampled_from(known), min_size=1, unique=True))
            shared.writes.drop_partitions(
                TableName(*model.names), ByNames(tuple(name_of(row) for row in chosen)), delete_data=True
            )
            for row in chosen:
                del model.partitions[row]
        elif action == "rename" and known:
            old, new_row = data.draw(st.sampled_from(known)), data.draw(values)
            if name_of(new_row) not in {name_of(row) for row in known}:
                own = model.partitions.pop(old)
                shared.writes.rename_partition(TableName(*model.names), old, model.new(new_row, own))
                # without files to count, the figures are the client's
                own_now = shared.reads.get_partition(TableName(*model.names), new_row).parameters
                model.partitions[new_row] = {k: v for k, v in own_now.items() if k != "transient_lastDdlTime"}
                assert model.partitions[new_row] == own
        model.check()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(values, max_size=12, unique_by=name_of), st.data())
def test_selections_agree_with_the_model(
    shared: PartitionCatalog, rows: list[tuple[str, str]], data: st.DataObject
) -> None:
    model = Model(shared)
    if rows:
        shared.writes.add_partitions(TableName(*model.names), [model.new(row, {}) for row in rows])
    ordered = sorted(rows, key=name_of)
    limit = data.draw(st.integers(-1, 4))

    def expected(condition: Any) -> list[str]:
        names = [name_of(row) for row in ordered if condition(row)]
        return names if limit < 0 else names[:limit]

    assert model.selected(AllPartitions(), limit) == expected(lambda row: True)
    row = data.draw(st.one_of(values, st.sampled_from(rows)) if rows else values)
    assert model.selected(ByValues(row), limit) == expected(lambda one: one == row)
    partial = data.draw(st.sampled_from([(), (row[0],), ("", row[1]), (row[0], ""), ("", ""), row]))

    def fits(one: tuple[str, str]) -> bool:
        return all(not part or part == own for part, own in zip(partial, one, strict=False))

    assert model.selected(ByPartialValues(partial), limit) == expected(fits)
    wanted = data.draw(st.lists(values, max_size=4))
    names = tuple(name_of(one) for one in [*wanted, *rows[::2]])
    assert model.selected(ByNames(names), limit) == expected(lambda one: name_of(one) in names)
    bound = data.draw(st.integers(-5, 11))
    assert model.selected(ByFilter(f"n > {bound}"), limit) == expected(lambda one: int(one[1]) > bound)
    if re.fullmatch(r"[^\"'\\]*", row[0]):
        text = f'k = "{row[0]}" or n = {bound}'
        assert model.selected(ByFilter(text), limit) == expected(lambda one: one[0] == row[0] or int(one[1]) == bound)
    if limit < 0:
        for one in (row, ("not", "5")):
            if one in rows:
                assert tuple(shared.reads.get_partition(TableName(*model.names), one).values) == one
            else:
                with pytest.raises(NoSuchObjectException):
                    shared.reads.get_partition(TableName(*model.names), one)
