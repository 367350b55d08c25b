"""Random writes of the catalog and reads that memory may answer, over Thrift."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from hms_cache.thrift_gen.hive_metastore import ttypes as t

CATALOGS = ("hive", "c2")
DATABASES = ("d1", "d2")
TABLES = ("t1", "t2", "acid", "mv")
KEYS: tuple[tuple[tuple[str, str], ...], ...] = ((), (("p", "string"),), (("p", "int"), ("q", "string")))
VALUES = (("1", "2", "10", "a b"), ("x", "__HIVE_DEFAULT_PARTITION__", "ü/="))
ENGINES = ("hive", "impala")
COLUMNS = ("a", "b")

Connection = Any
Ask = Callable[[Connection], Any]


@dataclass(frozen=True)
class Place:
    """A table's name, whether or not the table exists."""

    catalog: str
    database: str
    table: str

    @property
    def sent(self) -> str:
        """Returns the database as in calls without a field for the catalog."""
        return self.database if self.catalog == "hive" else f"@{self.catalog}#{self.database}"


PLACES = [Place("hive", *names) for names in itertools.product(DATABASES, TABLES)]
PLACES += [Place("c2", "d1", name) for name in ("t1", "acid")]


@dataclass
class Known:
    """What a client has received, and may send again when it is no longer true."""

    lists: dict[Place, list[str]] = field(default_factory=dict)
    ids: dict[Place, list[int]] = field(default_factory=dict)
    txns: list[tuple[int, Place, int]] = field(default_factory=list)
    there: list[Place] = field(default_factory=list)
    """Where there are tables."""
    number: int = 0


def descriptor(columns: tuple[str, ...] = COLUMNS) -> t.StorageDescriptor:
    """Of tables and partitions."""
    return t.StorageDescriptor(
        cols=[t.FieldSchema(name, "bigint", None) for name in columns],
        inputFormat="org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
        compressed=False,
        numBuckets=-1,
        serdeInfo=t.SerDeInfo(None, "org.apache.hadoop.hive.ql.io.orc.OrcSerde", {}),
        bucketCols=[],
        sortCols=[],
        parameters={},
    )


def statistics(place: Place, partition: str | None, columns: tuple[str, ...], number: int, engine: str) -> Any:
    """Statistics of these columns."""
    data = t.ColumnStatisticsData(longStats=t.LongColumnStatsData(lowValue=0, highValue=number, numNulls=0, numDVs=3))
    return t.ColumnStatistics(
        statsDesc=t.ColumnStatisticsDesc(
            isTblLevel=partition is None,
            dbName=place.database,
            tableName=place.table,
            partName=partition,
            catName=place.catalog,
        ),
        statsObj=[t.ColumnStatisticsObj(column, "bigint", data) for column in columns],
        engine=engine,
    )


class Writes:
    """Generates writes. Each consists of a text and a function that executes it; most of them succeed."""

    def __init__(
        self, chance: random.Random, known: Known, without: frozenset[str] = frozenset(), most: int = 1_000
    ) -> None:
        """:param without: names of its methods that are not used.
        :param most: number of kinds to choose once, so that each occurs repeatedly.
        """
        self._chance = chance
        self.known = known
        kinds = [getattr(self, name) for name in sorted(dir(self)) if name.startswith("w_")]
        names = sorted({kind.__name__ for kind in kinds} - without)
        drawn = {"w_create_table", "w_add_partitions", *chance.sample(names, min(most, len(names)))}
        self._kinds = [kind for kind in kinds if kind.__name__ in drawn]
        self.focus: list[Place] = []
        """What most writes are about, if anything; the first most of all."""

    def draw_only(self, kinds: Sequence[str]) -> None:
        """From now on, only these of its methods."""
        self._kinds = [getattr(self, name) for name in kinds]

    def draw(self) -> tuple[str, Ask]:
        """The next write."""
        self.known.number += 1
        made: Callable[[], tuple[str, Ask]] = self._chance.choice(self._kinds)
        detail, carry_out = made()
        return f"{made.__name__[2:]} {detail}", carry_out

    def _place(self) -> Place:
        if self.focus and self._chance.random() < 0.85:
            return self._chance.choices(self.focus, [6, *(1 for _ in self.focus[1:])])[0]
        there = [place for place in PLACES if place in self.known.there]
        return self._chance.choice(there if there and self._chance.random() < 0.9 else PLACES)

    def _free(self) -> Place:
        free = [place for place in self.focus or PLACES if place not in self.known.there]
        return self._chance.choice(free if free and self._chance.random() < 0.9 else PLACES)

    def _acid(self) -> Place:
        return Place("hive", self._chance.choice(DATABASES), "acid")

    def _context(self) -> t.EnvironmentContext:
        return t.EnvironmentContext(
            self._chance.choice(
                [{}, {}, {"CASCADE": "true"}, {"DO_NOT_UPDATE_STATS": "true"}, {"STATS_GENERATED": "TASK"}]
            )
        )

    def _values(self, keys: int) -> list[str]:
        return [self._chance.choice(VALUES[number]) for number in range(keys)]

    def _table(self, place: Place) -> t.Table:
        keys = self._chance.choice(KEYS)
        parameters = {"number": str(self.known.number)}
        kind = self._chance.choice(["MANAGED_TABLE", "EXTERNAL_TABLE"])
        if place.table == "acid":
            kind, keys = "MANAGED_TABLE", KEYS[1]
            parameters["transactional"] = "true"
        if kind == "EXTERNAL_TABLE":
            parameters["EXTERNAL"] = "TRUE"
        made = t.Table(
            tableName=place.table,
            dbName=place.database,
            catName=place.catalog,
            owner="o",
            createTime=1,
            sd=descriptor(),
            partitionKeys=[t.FieldSchema(name, of, None) for name, of in keys],
            parameters=parameters,
            tableType=kind,
        )
        if place.table == "mv":
            made.tableType, made.partitionKeys = "MATERIALIZED_VIEW", []
            made.parameters.pop("EXTERNAL", None)
            made.viewOriginalText = made.viewExpandedText = f"select {self.known.number}"
            made.rewriteEnabled = self._chance.random() < 0.7
            source = self._chance.choice(["t1", "acid"])
            made.creationMetadata = t.CreationMetadata(
                place.catalog, place.database, "mv", {f"{place.database}.{source}"}
            )
        return made

    def make_table(self, connection: Connection, place: Place) -> None:
        """A table at this location, if one may be there."""
        outcome(lambda c: c.create_table(self._table(place)), connection)

    def w_create_catalog(self) -> tuple[str, Ask]:
        return "c2", lambda c: c.create_catalog(t.CreateCatalogRequest(t.Catalog("c2", None, "file:/warehouse/c2")))

    def w_drop_catalog(self) -> tuple[str, Ask]:
        if self._chance.random() < 0.7:
            return self.w_create_catalog()

        def go(c: Connection) -> None:
            for name in DATABASES:
                with suppress(t.NoSuchObjectException):
                    c.drop_database(f"@c2#{name}", False, True)
            if self._chance.random() < 0.2:
                c.drop_catalog(t.DropCatalogRequest("c2"))

        return "c2", go

    def w_create_database(self) -> tuple[str, Ask]:
        place = self._free()
        made = t.Database(place.database, f"n{self.known.number}", None, {}, catalogName=place.catalog)
        return f"{place.sent}", lambda c: c.create_database(made)

    w_create_database2 = w_create_database

    def w_alter_database(self) -> tuple[str, Ask]:
        place = self._place()
        parameters: dict[str, str] = self._chance.choice(
            [{"k": str(self.known.number)}, {"k": "0"}, {"hms_cache.sync": "false"}, {"hms_cache.sync": "true"}]
        )

        def go(c: Connection) -> None:
            found = c.get_database(place.sent)
            found.parameters = parameters
            found.description = f"n{self.known.number}"
            c.alter_database(place.sent, found)

        return f"{place.sent} {parameters}", go

    def w_drop_database(self) -> tuple[str, Ask]:
        place = self._place()
        cascade = self._chance.random() < 0.3
        return f"{place.sent} {cascade}", lambda c: c.drop_database(place.sent, self._chance.random() < 0.5, cascade)

    def w_create_table(self) -> tuple[str, Ask]:
        place = self._free()
        table = self._table(place)
        return f"{place} {len(table.partitionKeys)}", lambda c: c.create_table(table)

    w_create_table2 = w_create_table3 = w_create_table

    def w_drop_table(self) -> tuple[str, Ask]:
        place = self._place()
        return f"{place}", lambda c: c.drop_table(place.sent, place.table, self._chance.random() < 0.5)

    def w_recreate_table(self) -> tuple[str, Ask]:
        """Immediately, with the same rows."""
        place = self._place()

        def go(c: Connection) -> None:
            found = c.get_table(place.sent, place.table)
            c.drop_table(place.sent, place.table, False)
            c.create_table(found)

        return f"{place}", go

    def w_alter_table(self) -> tuple[str, Ask]:
        place, context = self._place(), self._context()
        what = self._chance.choice(
            ["k", "k", "owner", "comment", "location", "columns", "serde", "sync", "retype", "rewrite", "key comment"]
        )
        number = self.known.number

        def go(c: Connection) -> None:
            table = c.get_table(place.sent, place.table)
            match what:
                case "k":
                    table.parameters["k"] = str(number)
                case "owner":
                    table.owner = f"o{number}"
                case "comment":
                    table.parameters["comment"] = f"c{number}"
                case "location":
                    table.sd.location = f"{table.sd.location}_{number}"
                case "columns":
                    table.sd.cols = [*table.sd.cols[:2], t.FieldSchema(f"c{number}", "int", None)]
                case "serde":
                    table.sd.serdeInfo.parameters = {"x": str(number)}
                case "sync":
                    table.parameters["hms_cache.sync"] = self._chance.choice(["false", "true"])
                case "retype":
                    table.sd.cols[0].type = self._chance.choice(["string", "bigint"])
                case "key comment":
                    for key in table.partitionKeys:
                        key.comment = f"n{number}"
                case "rewrite":
                    table.rewriteEnabled = not table.rewriteEnabled
            c.alter_table_with_environment_context(place.sent, place.table, table, context)

        return f"{place} {what} {context.properties}", go

    w_alter_table2 = w_alter_table

    def w_rename_table(self) -> tuple[str, Ask]:
        place, other = self._place(), self._free()
        if self._chance.random() < 0.7:
            other = Place(place.catalog, other.database, other.table)

        def go(c: Connection) -> None:
            table = c.get_table(place.sent, place.table)
            table.catName, table.dbName, table.tableName = other.catalog, other.database, other.table
            c.alter_table(place.sent, place.table, table)

        return f"{place} {other}", go

    def w_swap_tables(self) -> tuple[str, Ask]:
        """Three renames: what was `t1` is `t2`, with its id."""
        database = self._chance.choice(DATABASES)

        def go(c: Connection) -> None:
            for old, new in (("t1", "t3"), ("t2", "t1"), ("t3", "t2")):
                table = c.get_table(database, old)
                table.tableName = new
                c.alter_table(database, old, table)

        return database, go

    def w_truncate(self) -> tuple[str, Ask]:
        place = self._place()
        names = None if self._chance.random() < 0.5 else ["p=1"]
        return f"{place} {names}", lambda c: c.truncate_table(place.sent, place.table, names)

    def w_update_params(self) -> tuple[str, Ask]:
        place = self._place()
        updates = [t.TableParamsUpdate(place.catalog, place.database, place.table, {"u": str(self.known.number)})]
        return f"{place}", lambda c: c.update_table_params(updates)

    def w_add_partitions(self) -> tuple[str, Ask]:
        place = self._place()
        number = self.known.number

        def go(c: Connection) -> None:
            table = c.get_table(place.sent, place.table)
            made: dict[tuple[str, ...], t.Partition] = {}
            for _ in range(self._chance.randint(1, 4)):
                values = self._values(len(table.partitionKeys))
                made[tuple(values)] = t.Partition(
                    values, place.database, place.table, 1, 0, descriptor(), {"number": str(number)}
                )
                made[tuple(values)].catName = place.catalog
            c.add_partitions_req(
                t.AddPartitionsRequest(
                    place.database, place.table, list(made.values()), True, needResult=False, catName=place.catalog
                )
            )

        return f"{place}", go

    w_add_partitions2 = w_add_partitions3 = w_add_partitions4 = w_add_partitions

    def _one(self, c: Connection, place: Place) -> t.Partition:
        """One of its partitions."""
        found = c.get_partitions(place.sent, place.table, -1)
        if not found:
            raise t.NoSuchObjectException("none to choose")
        one: t.Partition = self._chance.choice(found)
        return one

    def w_alter_partition(self) -> tuple[str, Ask]:
        place, context, number = self._place(), self._context(), self.known.number

        def go(c: Connection) -> None:
            one = self._one(c, place)
            one.parameters["k"] = str(number)
            c.alter_partitions_with_environment_context(place.sent, place.table, [one], context)

        return f"{place} {context.properties}", go

    w_alter_partition2 = w_alter_partition

    def w_rename_partition(self) -> tuple[str, Ask]:
        place = self._place()

        def go(c: Connection) -> None:
            one = self._one(c, place)
            old, one.values = one.values, self._values(len(one.values))
            c.rename_partition(place.sent, place.table, old, one)

        return f"{place}", go

    def w_drop_partition(self) -> tuple[str, Ask]:
        place = self._place()

        def go(c: Connection) -> None:
            c.drop_partition(place.sent, place.table, self._one(c, place).values, False)

        return f"{place}", go

    def w_drop_and_add_partition(self) -> tuple[str, Ask]:
        place = self._place()

        def go(c: Connection) -> None:
            one = self._one(c, place)
            c.drop_partition(place.sent, place.table, one.values, False)
            one.parameters = {"again": str(self.known.number)}
            c.add_partition(one)

        return f"{place}", go

    def w_append_partition(self) -> tuple[str, Ask]:
        place = self._place()

        def go(c: Connection) -> None:
            keys = len(c.get_table(place.sent, place.table).partitionKeys)
            c.append_partition(place.sent, place.table, self._values(keys))

        return f"{place}", go

    def w_exchange(self) -> tuple[str, Ask]:
        place, other = self._place(), self._place()
        return f"{place} {other}", lambda c: c.exchange_partitions(
            {"p": self._chance.choice(VALUES[0])}, place.sent, place.table, other.sent, other.table
        )

    def w_statistics(self) -> tuple[str, Ask]:
        place, engine, number = self._place(), self._chance.choice(ENGINES), self.known.number
        columns = self._chance.choice([("a",), ("b",), COLUMNS])
        return f"{place} {engine} {columns}", lambda c: c.update_table_column_statistics_req(
            t.SetPartitionsStatsRequest([statistics(place, None, columns, number, engine)], engine=engine)
        )

    def w_partition_statistics(self) -> tuple[str, Ask]:
        place, engine, number = self._place(), self._chance.choice(ENGINES), self.known.number
        columns = self._chance.choice([("a",), ("b",), COLUMNS])

        def go(c: Connection) -> None:
            names = c.get_partition_names(place.sent, place.table, -1)
            chosen = self._chance.sample(names, min(len(names), 2))
            c.set_aggr_stats_for(
                t.SetPartitionsStatsRequest(
                    [statistics(place, name, columns, number, engine) for name in chosen],
                    needMerge=self._chance.random() < 0.3,
                    engine=engine,
                )
            )

        return f"{place} {engine} {columns}", go

    w_partition_statistics2 = w_partition_statistics

    def w_delete_statistics(self) -> tuple[str, Ask]:
        place, engine = self._place(), self._chance.choice([*ENGINES, None])
        column = self._chance.choice([["a"], ["A "], None])
        parts = self._chance.choice([None, ["p=1"]])
        return f"{place} {engine} {column} {parts}", lambda c: c.delete_column_statistics_req(
            t.DeleteColumnStatisticsRequest(
                place.catalog, place.database, place.table, parts, column, engine, tableLevel=parts is None
            )
        )

    def w_constraint(self) -> tuple[str, Ask]:
        place, number = self._place(), self.known.number
        common = {
            "table_db": place.database,
            "table_name": place.table,
            "column_name": "a",
            "enable_cstr": True,
            "validate_cstr": False,
            "rely_cstr": True,
            "catName": place.catalog,
        }
        made: dict[str, Ask] = {
            "pk": lambda c: c.add_primary_key(
                t.AddPrimaryKeyRequest([t.SQLPrimaryKey(key_seq=1, pk_name=f"pk{number}", **common)])
            ),
            "nn": lambda c: c.add_not_null_constraint(
                t.AddNotNullConstraintRequest([t.SQLNotNullConstraint(nn_name=f"nn{number}", **common)])
            ),
            "uk": lambda c: c.add_unique_constraint(
                t.AddUniqueConstraintRequest([t.SQLUniqueConstraint(key_seq=1, uk_name=f"uk{number}", **common)])
            ),
            "dc": lambda c: c.add_default_constraint(
                t.AddDefaultConstraintRequest(
                    [t.SQLDefaultConstraint(default_value="1", dc_name=f"dc{number}", **common)]
                )
            ),
            "cc": lambda c: c.add_check_constraint(
                t.AddCheckConstraintRequest(
                    [t.SQLCheckConstraint(check_expression="a > 1", dc_name=f"cc{number}", **common)]
                )
            ),
        }
        kind = self._chance.choice(sorted(made))
        return f"{place} {kind}", made[kind]

    def w_foreign_key(self) -> tuple[str, Ask]:
        place, parent, number = self._place(), self._place(), self.known.number
        key = t.SQLForeignKey(
            parent.database,
            parent.table,
            "a",
            place.database,
            place.table,
            "b",
            1,
            0,
            0,
            f"fk{number}",
            None,
            True,
            False,
            True,
            place.catalog,
        )

        def go(c: Connection) -> None:
            keys = c.get_primary_keys(t.PrimaryKeysRequest(parent.database, parent.table, parent.catalog)).primaryKeys
            key.pk_name = keys[0].pk_name if keys else None
            c.add_foreign_key(t.AddForeignKeyRequest([key]))

        return f"{place} -> {parent}", go

    def w_drop_constraint(self) -> tuple[str, Ask]:
        place = self._place()

        def go(c: Connection) -> None:
            every = c.get_all_table_constraints(
                t.AllTableConstraintsRequest(place.database, place.table, place.catalog)
            ).allTableConstraints
            names = [
                getattr(one, "pk_name", None) or getattr(one, "nn_name", None) or getattr(one, "uk_name", None)
                for kind in (every.primaryKeys, every.notNullConstraints, every.uniqueConstraints)
                for one in kind or ()
            ]
            if names:
                c.drop_constraint(
                    t.DropConstraintRequest(place.database, place.table, self._chance.choice(names), place.catalog)
                )

        return f"{place}", go

    def _function(self, place: Place, name: str) -> t.Function:
        return t.Function(
            name,
            place.database,
            f"n{self.known.number}",
            "o",
            t.PrincipalType.USER,
            1,
            t.FunctionType.JAVA,
            [],
            place.catalog,
        )

    def w_function(self) -> tuple[str, Ask]:
        place, name = self._place(), self._chance.choice("fg")
        made = self._function(place, name)
        made.functionName = self._chance.choice([name, name, name, "h"])
        kind = self._chance.choice(["create_function", "alter_function", "drop_function"])
        asks: dict[str, Ask] = {
            "create_function": lambda c: c.create_function(made),
            "alter_function": lambda c: c.alter_function(place.sent, name, made),
            "drop_function": lambda c: c.drop_function(place.sent, name),
        }
        return f"{kind} {place.sent} {name} {made.functionName}", asks[kind]

    w_function2 = w_function

    def w_open(self) -> tuple[str, Ask]:
        place = self._acid()

        def go(c: Connection) -> None:
            (txn,) = c.open_txns(t.OpenTxnRequest(1, "u", "h")).txn_ids
            (allocated,) = c.allocate_table_write_ids(
                t.AllocateTableWriteIdsRequest(place.database, place.table, [txn])
            ).txnToWriteIds
            self.known.txns.append((txn, place, allocated.writeId))

        return f"{place}", go

    w_open2 = w_open

    def w_end(self) -> tuple[str, Ask]:
        commits = self._chance.random() < 0.6

        def go(c: Connection) -> None:
            if self.known.txns:
                txn, _, _ = self.known.txns.pop(self._chance.randrange(len(self.known.txns)))
                if commits:
                    c.commit_txn(t.CommitTxnRequest(txn))
                else:
                    c.abort_txn(t.AbortTxnRequest(txn))

        return f"{commits}", go

    w_end2 = w_end

    def w_acid_alter(self) -> tuple[str, Ask]:
        """With a write id of an open transaction, and a list, as an INSERT of Hive 4."""
        number = self.known.number

        def go(c: Connection) -> None:
            if not self.known.txns:
                return
            txn, place, write_id = self._chance.choice(self.known.txns)
            lists = write_id_list(c, place, txn)
            kind = self._chance.choice(["table", "statistics", "partition statistics", "notify", "partition"])
            if kind == "table":
                table = c.get_table(place.database, place.table)
                table.parameters["w"] = str(number)
                c.alter_table_req(
                    t.AlterTableRequest(place.catalog, place.database, place.table, table, None, write_id, lists)
                )
            elif kind == "partition":
                one = self._one(c, place)
                one.parameters["w"] = str(number)
                c.alter_partitions_req(
                    t.AlterPartitionsRequest(place.catalog, place.database, place.table, [one], None, write_id, lists)
                )
            elif kind == "notify":
                files = t.InsertEventRequestData(replace=False, filesAdded=["file:/a"])
                c.add_write_notification_log(
                    t.WriteNotificationLogRequest(txn, write_id, place.database, place.table, files, None)
                )
            else:
                name = self._one(c, place).values[0] if kind == "partition statistics" else None
                stats = statistics(place, f"p={name}" if name else None, ("a",), number, "hive")
                request = t.SetPartitionsStatsRequest([stats], False, write_id, lists, "hive")
                if name:
                    c.update_partition_column_statistics_req(request)
                else:
                    c.update_table_column_statistics_req(request)

        return "", go

    w_acid_alter2 = w_acid_alter

    def w_creation_metadata(self) -> tuple[str, Ask]:
        place = Place("hive", self._chance.choice(DATABASES), "mv")
        used = self._chance.choice(["t1", "t2", "acid"])
        made = t.CreationMetadata("hive", place.database, "mv", {f"{place.database}.{used}"})
        return f"{place} {used}", lambda c: c.update_creation_metadata("hive", place.database, "mv", made)

    def w_fire(self) -> tuple[str, Ask]:
        place = self._place()
        data = t.InsertEventRequestData(replace=False, filesAdded=["file:/a"])
        request = t.FireEventRequest(
            True, t.FireEventRequestData(insertData=data), place.database, place.table, catName=place.catalog
        )
        return f"{place}", lambda c: c.fire_listener_event(request)


def write_id_list(c: Connection, place: Place, txn: int = 0) -> str:
    """Returns the table's write-id list of a reader's current snapshot."""
    opened = c.get_open_txns()
    text = f"{opened.txn_high_water_mark}:{opened.min_open_txn or 9223372036854775807}:"
    others = sorted(one for one in opened.open_txns if one != txn)
    aborted = [one for one in others if _is_aborted(opened, one)]
    still = [one for one in others if one not in aborted]
    text += f"{','.join(map(str, still))}:{','.join(map(str, aborted))}"
    (found,) = c.get_valid_write_ids(
        t.GetValidWriteIdsRequest([f"{place.database}.{place.table}"], text)
    ).tblValidWriteIds
    invalid = list(found.invalidWriteIds)
    bits = found.abortedBits or b""
    aborted_ids = [one for at, one in enumerate(invalid) if at // 8 < len(bits) and bits[at // 8] >> at % 8 & 1]
    open_ids = [one for one in invalid if one not in aborted_ids]
    lowest = found.minOpenWriteId or 9223372036854775807
    return (
        f"{place.database}.{place.table}:{found.writeIdHighWaterMark}:{lowest}:"
        f"{','.join(map(str, open_ids))}:{','.join(map(str, aborted_ids))}"
    )


def _is_aborted(opened: Any, txn: int) -> bool:
    at = sorted(opened.open_txns).index(txn)
    bits = opened.abortedBits or b""
    return at // 8 < len(bits) and bool(bits[at // 8] >> at % 8 & 1)


# Reads


def reads(chance: random.Random, known: Known) -> Iterator[tuple[str, Ask]]:
    """Each kind of read, each with random names."""
    for catalog in CATALOGS:
        prefix = "" if catalog == "hive" else f"@{catalog}#"
        yield f"get_databases {catalog}", lambda c, p=prefix: c.get_databases(f"{p}*")
        yield f"get_databases d1|x {catalog}", lambda c, p=prefix: c.get_databases(f"{p}d1|x*")
        yield (
            f"get_databases_req {catalog}",
            lambda c, k=catalog: c.get_databases_req(t.GetDatabaseObjectsRequest(k, "*")),
        )
        yield (
            f"get_functions_req {catalog}",
            lambda c, k=catalog: c.get_functions_req(t.GetFunctionsRequest(None, k, "*", False)),
        )
        yield f"get_table_meta {catalog}", lambda c, p=prefix: c.get_table_meta(f"{p}d*", "t*", None)
    yield "get_all_databases", lambda c: c.get_all_databases()
    yield "get_all_functions", lambda c: c.get_all_functions()
    yield "get_materializations", lambda c: c.get_all_materialized_view_objects_for_rewriting()
    for catalog, database in (("hive", "d1"), ("hive", "d2"), ("c2", "d1")):
        yield from of_database(Place(catalog, database, ""), chance)
    for place in PLACES:
        yield from of_table(place)
        yield from of_partitions(place, chance)
        yield from of_lists(place, chance, known)


def of_database(place: Place, chance: random.Random) -> Iterator[tuple[str, Ask]]:
    sent, catalog, database = place.sent, place.catalog, place.database
    yield f"get_database {sent}", lambda c: c.get_database(sent)
    yield f"get_database_req {sent}", lambda c: c.get_database_req(t.GetDatabaseRequest(database.upper(), catalog))
    yield f"get_all_tables {sent}", lambda c: c.get_all_tables(sent)
    pattern = chance.choice(["*", "t*", "T1|mv", "t.", "*c*"])
    yield f"get_tables {sent} {pattern}", lambda c: c.get_tables(sent, pattern)
    kind = chance.choice(["MANAGED_TABLE", "EXTERNAL_TABLE", "MATERIALIZED_VIEW"])
    yield f"get_tables_by_type {sent} {kind}", lambda c: c.get_tables_by_type(sent, pattern, kind)
    yield f"get_table_meta {sent} {pattern} {kind}", lambda c: c.get_table_meta(sent, pattern, [kind])
    yield f"get_functions {sent}", lambda c: c.get_functions(sent, "*")
    yield f"get_function {sent}", lambda c: c.get_function(sent, "f")
    yield f"get_function h {sent}", lambda c: c.get_function(sent, "h")
    yield f"get_materialized_views {sent}", lambda c: c.get_materialized_views_for_rewriting(sent)
    names = list(TABLES)
    yield f"get_table_objects {sent}", lambda c: c.get_table_objects_by_name(sent, names[:3])
    yield (
        f"get_table_objects_req {sent} {pattern}",
        lambda c: c.get_table_objects_by_name_req(
            t.GetTablesRequest(dbName=database, tblNames=None, catName=catalog, tablesPattern=pattern)
        ),
    )
    projection = t.GetProjectionsSpec(["dbName", "tableName", "owner", "sd.location"], None, None)
    yield (
        f"get_table_objects projected {sent}",
        lambda c: c.get_table_objects_by_name_req(
            t.GetTablesRequest(dbName=database, tblNames=names[:3], catName=catalog, projectionSpec=projection)
        ),
    )
    yield (
        f"get_tables_ext {sent} {pattern}",
        lambda c: c.get_tables_ext(t.GetTablesExtRequest(catalog, database, pattern, 3, 2)),
    )
    yield (
        f"get_functions_req {sent}",
        lambda c: c.get_functions_req(t.GetFunctionsRequest(database, catalog, "f*", True)),
    )


def of_table(place: Place) -> Iterator[tuple[str, Ask]]:
    sent, table, catalog, database = place.sent, place.table, place.catalog, place.database
    yield f"get_table {place}", lambda c: c.get_table(sent, table)
    yield f"get_table upper {place}", lambda c: c.get_table(f" {sent}".upper().strip(), table.upper())
    yield f"get_table_req {place}", lambda c: c.get_table_req(t.GetTableRequest(database, table, catName=catalog))
    for engine in (None, *ENGINES):
        yield (
            f"get_table_req statistics {engine} {place}",
            lambda c, e=engine: c.get_table_req(
                t.GetTableRequest(database, table, catName=catalog, getColumnStats=True, engine=e)
            ),
        )
        yield (
            f"get_table_statistics {engine} {place}",
            lambda c, e=engine: c.get_table_statistics_req(
                t.TableStatsRequest(database, table, list(COLUMNS), catalog, engine=e)
            ),
        )
        yield (
            f"get_table_statistics a {engine} {place}",
            lambda c, e=engine: c.get_table_statistics_req(
                t.TableStatsRequest(database, table, ["A"], catalog, engine=e)
            ),
        )
        for names in (["p=1"], ["p=1", "p=2", "p=1/q=x", "p=10/q=x"], ["p=2"]):
            yield (
                f"get_partitions_statistics {engine} {names} {place}",
                lambda c, e=engine, n=names: c.get_partitions_statistics_req(
                    t.PartitionsStatsRequest(database, table, list(COLUMNS), n, catalog, engine=e)
                ),
            )
            yield (
                f"get_aggr_stats_for {engine} {names} {place}",
                lambda c, e=engine, n=names: c.get_aggr_stats_for(
                    t.PartitionsStatsRequest(database, table, list(COLUMNS), n, catalog, engine=e)
                ),
            )
    yield f"get_table_column_statistics {place}", lambda c: c.get_table_column_statistics(sent, table, "a")
    yield (
        f"get_partition_column_statistics {place}",
        lambda c: c.get_partition_column_statistics(sent, table, "p=1", "a"),
    )
    yield f"get_fields {place}", lambda c: c.get_fields(sent, table)
    yield f"get_schema {place}", lambda c: c.get_schema(sent, table)
    yield (
        f"get_fields_with_context {place}",
        lambda c: c.get_fields_with_environment_context(sent, table, t.EnvironmentContext({"x": "y"})),
    )
    yield f"get_schema_with_context {place}", lambda c: c.get_schema_with_environment_context(sent, table, None)
    yield f"get_fields_req {place}", lambda c: c.get_fields_req(t.GetFieldsRequest(catalog, database, table))
    yield f"get_schema_req {place}", lambda c: c.get_schema_req(t.GetSchemaRequest(catalog, database, table))
    yield f"get_primary_keys {place}", lambda c: c.get_primary_keys(t.PrimaryKeysRequest(database, table, catalog))
    yield (
        f"get_foreign_keys child {place}",
        lambda c: c.get_foreign_keys(t.ForeignKeysRequest(None, None, database, table, catalog)),
    )
    yield (
        f"get_foreign_keys parent {place}",
        lambda c: c.get_foreign_keys(t.ForeignKeysRequest(database, table, None, None, catalog)),
    )
    for method, request in (
        ("get_unique_constraints", t.UniqueConstraintsRequest),
        ("get_not_null_constraints", t.NotNullConstraintsRequest),
        ("get_default_constraints", t.DefaultConstraintsRequest),
        ("get_check_constraints", t.CheckConstraintsRequest),
    ):
        yield f"{method} {place}", lambda c, m=method, r=request: getattr(c, m)(r(catalog, database, table))
    yield (
        f"get_all_table_constraints {place}",
        lambda c: c.get_all_table_constraints(t.AllTableConstraintsRequest(database, table, catalog)),
    )


def of_partitions(place: Place, chance: random.Random) -> Iterator[tuple[str, Ask]]:
    sent, table, catalog, database = place.sent, place.table, place.catalog, place.database
    most = chance.choice([-1, -1, 0, 1, 3])
    one = chance.choice([["1"], ["2"], ["1", "x"], ["10", "ü/="], ["a b"], ["1", VALUES[1][1]]])
    some = chance.choice([["1"], [""], ["1", ""], ["", "x"], ["", ""]])
    name = chance.choice(["p=1", "p=2", "p=1/q=x", "p=a b"])
    names = ["p=1", "p=10", "p=1/q=x", "p=2/q=x", "p=nowhere", "p=10/q=%C3%BC%2F%3D"]
    text = chance.choice(["p = 1", 'p = "1"', 'p >= "10"', "p > 1", 'q = "x"', 'p = "1" and q like "x%"', 'p != "2"'])
    yield f"get_partition {one} {place}", lambda c: c.get_partition(sent, table, one)
    yield f"get_partition_by_name {name} {place}", lambda c: c.get_partition_by_name(sent, table, name)
    yield (
        f"get_partition_req {one} {place}",
        lambda c: c.get_partition_req(t.GetPartitionRequest(catalog, database, table, one)),
    )
    yield f"get_partition_with_auth {one} {place}", lambda c: c.get_partition_with_auth(sent, table, one, "u", [])
    yield f"get_partitions {most} {place}", lambda c: c.get_partitions(sent, table, most)
    yield f"get_partitions_with_auth {most} {place}", lambda c: c.get_partitions_with_auth(sent, table, most, "u", [])
    yield f"get_partitions_pspec {most} {place}", lambda c: c.get_partitions_pspec(sent, table, most)
    yield (
        f"get_partitions_req {most} {place}",
        lambda c: c.get_partitions_req(t.PartitionsRequest(catalog, database, table, most)),
    )
    yield f"get_partition_names {most} {place}", lambda c: c.get_partition_names(sent, table, most)
    yield (
        f"fetch_partition_names {most} {place}",
        lambda c: c.fetch_partition_names_req(t.PartitionsRequest(catalog, database, table, most)),
    )
    yield (
        f"get_partition_names_ps {some} {most} {place}",
        lambda c: c.get_partition_names_ps(sent, table, some, most),
    )
    yield (
        f"get_partition_names_ps_req {some} {most} {place}",
        lambda c: c.get_partition_names_ps_req(t.GetPartitionNamesPsRequest(catalog, database, table, some, most)),
    )
    order = chance.choice([None, "0:+", "0:-", "1:-,0:+"])
    yield (
        f"get_partition_names_req {order} {most} {place}",
        lambda c: c.get_partition_names_req(
            t.PartitionsByExprRequest(database, table, b"", None, most, catalog, order)
        ),
    )
    yield f"get_partitions_ps {some} {most} {place}", lambda c: c.get_partitions_ps(sent, table, some, most)
    yield (
        f"get_partitions_ps_auth {some} {most} {place}",
        lambda c: c.get_partitions_ps_with_auth_req(
            t.GetPartitionsPsWithAuthRequest(catalog, database, table, some, most, "u", [])
        ),
    )
    yield (
        f"get_partitions_ps_auth names {place}",
        lambda c: c.get_partitions_ps_with_auth_req(
            t.GetPartitionsPsWithAuthRequest(catalog, database, table, None, -1, "u", [], partNames=names)
        ),
    )
    yield f"by_filter {text} {most} {place}", lambda c: c.get_partitions_by_filter(sent, table, text, most)
    yield (
        f"by_filter_req {text} {most} {place}",
        lambda c: c.get_partitions_by_filter_req(
            t.GetPartitionsByFilterRequest(catalog, database, table, text, most, True, "n%", None)
        ),
    )
    yield f"count {text} {place}", lambda c: c.get_num_partitions_by_filter(sent, table, text)
    yield f"specs_by_filter {text} {place}", lambda c: c.get_part_specs_by_filter(sent, table, text, most)
    yield f"by_names {place}", lambda c: c.get_partitions_by_names(sent, table, names)
    for engine in ENGINES:
        yield (
            f"by_names_req {engine} {place}",
            lambda c, e=engine: c.get_partitions_by_names_req(
                t.GetPartitionsByNamesRequest(sent, table, names, True, engine=e)
            ),
        )
    yield (
        f"partition_values {most} {place}",
        lambda c: c.get_partition_values(
            t.PartitionValuesRequest(
                database, table, [t.FieldSchema("p", "string", "")], True, None, None, True, most, catalog
            )
        ),
    )
    yield (
        f"partition_values filter {place}",
        lambda c: c.get_partition_values(
            t.PartitionValuesRequest(
                database, table, [t.FieldSchema("p", "string", "")], False, text, None, False, -1, catalog
            )
        ),
    )
    mode = chance.choice([t.PartitionFilterMode.BY_NAMES, t.PartitionFilterMode.BY_VALUES])
    filters = names if mode == t.PartitionFilterMode.BY_NAMES else some
    spec = t.GetProjectionsSpec(["values", "sd.location", "parameters"], "n%", None)
    yield (
        f"with_specs {mode} {filters} {place}",
        lambda c: c.get_partitions_with_specs(
            t.GetPartitionsRequest(
                catalog,
                database,
                table,
                projectionSpec=spec,
                filterSpec=t.GetPartitionsFilterSpec(mode, list(filters)),
            )
        ),
    )


def of_lists(place: Place, chance: random.Random, known: Known) -> Iterator[tuple[str, Ask]]:
    """With a list and an id that were valid once."""
    lists, ids = known.lists.get(place), known.ids.get(place)
    if not lists or not ids or place.catalog != "hive":
        return
    ids_text = chance.choice(lists[-4:])
    table_id = chance.choice([None, -1, *ids[-2:]])
    table_id = None if table_id == -1 else table_id
    sent, table, catalog, database = place.sent, place.table, place.catalog, place.database
    shown = f"{ids_text} id {table_id}"
    yield (
        f"get_table_req {shown} {place}",
        lambda c: c.get_table_req(
            t.GetTableRequest(database, table, catName=catalog, validWriteIdList=ids_text, id=table_id)
        ),
    )
    yield (
        f"get_table_req statistics {shown} {place}",
        lambda c: c.get_table_req(
            t.GetTableRequest(
                database,
                table,
                catName=catalog,
                validWriteIdList=ids_text,
                getColumnStats=True,
                engine="hive",
                id=table_id,
            )
        ),
    )
    yield (
        f"get_partitions_req {shown} {place}",
        lambda c: c.get_partitions_req(
            t.PartitionsRequest(catalog, database, table, -1, validWriteIdList=ids_text, id=table_id)
        ),
    )
    yield (
        f"get_partition_req {shown} {place}",
        lambda c: c.get_partition_req(
            t.GetPartitionRequest(catalog, database, table, ["1"], validWriteIdList=ids_text, id=table_id)
        ),
    )
    yield (
        f"table statistics {shown} {place}",
        lambda c: c.get_table_statistics_req(
            t.TableStatsRequest(
                database, table, list(COLUMNS), catalog, validWriteIdList=ids_text, engine="hive", id=table_id
            )
        ),
    )
    for method in ("get_partitions_statistics_req", "get_aggr_stats_for"):
        yield (
            f"{method} {shown} {place}",
            lambda c, m=method: getattr(c, m)(
                t.PartitionsStatsRequest(
                    database, table, list(COLUMNS), ["p=1", "p=2"], catalog, validWriteIdList=ids_text, engine="hive"
                )
            ),
        )
    yield (
        f"by_names_req {shown} {place}",
        lambda c: c.get_partitions_by_names_req(
            t.GetPartitionsByNamesRequest(
                sent, table, ["p=1", "p=2", "p=10"], True, engine="hive", validWriteIdList=ids_text, id=table_id
            )
        ),
    )
    yield (
        f"constraints {shown} {place}",
        lambda c: c.get_all_table_constraints(
            t.AllTableConstraintsRequest(database, table, catalog, validWriteIdList=ids_text, tableId=table_id)
        ),
    )


def outcome(ask: Ask, connection: Connection) -> Any:
    """The answer, or the type and the text of the exception."""
    try:
        return ask(connection)
    except Exception as error:
        if not hasattr(error, "thrift_spec") and type(error).__name__ != "TApplicationException":
            raise
        return type(error).__name__, getattr(error, "message", str(error))
