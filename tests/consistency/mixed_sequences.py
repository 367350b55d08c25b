"""Sequences of calls like those of Spark, Hive and Iceberg, on tables to which only this client writes."""

from __future__ import annotations

from hms_cache.thrift_gen.hive_metastore import ttypes as t
from tests.consistency.all_reads import Ask, Connection, Place, outcome, statistics, write_id_list
from tests.consistency.mixed_clients import ORACLE, OTHER_CATALOG, MixedClient


def _sent(place: Place) -> tuple[str, str]:
    return place.catalog, place.database


class Sequences(MixedClient):
    """A client with all of them: the methods whose names begin with `s_`."""

    # Spark

    def s_spark_saves_a_table(self, place: Place) -> None:
        """CREATE TABLE AS and ANALYZE: the table, its partitions by 100s, parameters without statistics, statistics."""
        if self._get(place) is None:
            keys = self._chance.choice([0, 1, 1, 2])
            self._do("create_table", lambda c: c.create_table(self._table(place, keys)), place)
        table = self._there(place)
        if table is None:
            return
        if table.partitionKeys:
            count = self._chance.choice([1, 3, 40])
            parts = [self._new_partition(place, table, str(number)) for number in range(1, count + 1)]
            request = t.AddPartitionsRequest(place.database, place.table, parts, True, False, place.catalog)
            self._do(f"add {count}", lambda c: c.add_partitions_req(request), place)
        table = self._get(place)
        if table is not None:
            table.parameters["spark.sql.statistics.totalSize"] = str(self._next())
            context = t.EnvironmentContext({"DO_NOT_UPDATE_STATS": "true"})
            self._do(
                "alter",
                lambda c: c.alter_table_with_environment_context(place.sent, place.table, table, context),
                place,
            )

    def s_spark_overwrites_partitions(self, place: Place) -> None:
        """Reads a partition by a filter, drops it, adds it again elsewhere, alters it."""
        one = self._partition(place)
        if one is None:
            return
        self._do("drop partition", lambda c: c.drop_partition(place.sent, place.table, one.values, False), place)
        one.sd.location = f"{one.sd.location}_{self._next()}"
        one.parameters = {"n": str(self._next())}
        self._do("add partition", lambda c: c.add_partition(one), place)
        one.parameters["numRows"] = "7"
        self._do("alter partition", lambda c: c.alter_partitions(place.sent, place.table, [one]), place)

    def s_add_and_drop_many(self, place: Place) -> None:
        """Adds more partitions than one load reads, then drops half of them."""
        table = self._there(place)
        if table is None or len(table.partitionKeys) != 1 or self._chance.random() < 0.6:
            return
        parts = [self._new_partition(place, table, f"m{number}") for number in range(330)]
        request = t.AddPartitionsRequest(place.database, place.table, parts, True, False, place.catalog)
        self._do("add 330", lambda c: c.add_partitions_req(request), place)
        names = [name for name in self._names(place) if name.startswith("p=m")][:: self._chance.choice([1, 2])]
        drop = t.DropPartitionsRequest(
            place.database, place.table, t.RequestPartsSpec(names=names), False, True, catName=place.catalog
        )
        self._do(f"drop {len(names)}", lambda c: c.drop_partitions_req(drop), place)

    # Names

    def s_rename_in_a_ring(self, place: Place) -> None:
        """`a` becomes `z`, `b` becomes `a`, `z` becomes `b` of the other database, if there is none."""
        other = Place("hive", self.databases[1], "b") if place.catalog == "hive" else Place(*_sent(place), "b")
        first, temporary = Place(*_sent(place), "a"), Place(*_sent(place), "z")
        second = Place(*_sent(place), "b")
        for old, new in ((first, temporary), (second, first), (temporary, other), (temporary, second)):
            table = self._get(old)
            if table is not None and self._get(new) is None:
                table.catName, table.dbName, table.tableName = new.catalog, new.database, new.table
                self._do(f"rename {old} to", lambda c, o=old, tab=table: c.alter_table(o.sent, o.table, tab), new)
                self._look(old, self._chance.randrange(self._servers))

    def s_drop_and_recreate(self, place: Place) -> None:
        """Under the same name, with other keys, immediately."""
        self._there(place)
        self._do("drop_table", lambda c: c.drop_table(place.sent, place.table, False), place)
        if self._chance.random() < 0.8:
            keys = self._chance.choice([0, 1, 2])
            self._do("create_table again", lambda c: c.create_table(self._table(place, keys)), place)

    def s_rename_partition(self, place: Place) -> None:
        one = self._partition(place)
        if one is None:
            return
        old = list(one.values)
        one.values = [f"{self._chance.choice('rst')}", *one.values[1:]]
        self._do(f"rename partition {old}", lambda c: c.rename_partition(place.sent, place.table, old, one), place)

    def s_exchange(self, place: Place) -> None:
        other = Place(place.catalog, place.database, "b" if place.table == "a" else "a")
        self._there(other)
        one = self._partition(place)
        if one is not None:
            spec = {"p": one.values[0]}
            self._do(
                f"exchange {spec} to {other}",
                lambda c: c.exchange_partitions(spec, place.sent, place.table, other.sent, other.table),
                place,
            )
            self._look(other, self._chance.randrange(self._servers))

    def s_databases(self, place: Place) -> None:
        """Changes description, owner and parameters; sometimes drops and creates all of it."""
        number = self._next()

        def go(c: Connection) -> None:
            found = c.get_database(place.sent)
            found.description, found.ownerName = f"d{number}", f"o{number}"
            found.ownerType = self._chance.choice([t.PrincipalType.USER, t.PrincipalType.ROLE])
            found.parameters = self._chance.choice([{}, {"k": str(number)}])
            c.alter_database(place.sent, found)

        self._do("alter_database", go, place)
        if self._chance.random() < 0.15:
            self._do("drop_database", lambda c: c.drop_database(place.sent, False, True), place)
            made = t.Database(place.database, f"d{number}", None, {}, catalogName=place.catalog)
            self._do("create_database", lambda c: c.create_database(made), place)

    # Hive

    def s_hive_transaction(self, place: Place) -> None:
        """INSERT into a transactional table: lock, write id, partitions, statistics, and reads with its own list.
        The transaction may end much later, aborted."""
        place = Place("hive", place.database, "acid")
        table = self._there(place)
        if table is None or not table.partitionKeys:
            self.s_drop_and_recreate(place)
            return
        (txn,) = self._do("open", lambda c: c.open_txns(t.OpenTxnRequest(1, "u", "h"))).txn_ids
        part = t.LockComponent(t.LockType.SHARED_WRITE, t.LockLevel.TABLE, place.database, place.table)
        part.operationType, part.isTransactional = t.DataOperationType.INSERT, True
        self._do("lock", lambda c: c.lock(t.LockRequest([part], txn, "u", "h")), place)
        request = t.AllocateTableWriteIdsRequest(place.database, place.table, [txn])
        allocated = self._do("allocate", lambda c: c.allocate_table_write_ids(request), place)
        write_id = allocated.txnToWriteIds[0].writeId
        lists = write_id_list(self._client.connections[ORACLE], place, txn)
        self._known.lists[place].append(lists)
        value = self._chance.choice("1234")
        new = self._new_partition(place, table, value)
        new.writeId = write_id
        add = t.AddPartitionsRequest(place.database, place.table, [new], True, False, "hive", validWriteIdList=lists)
        self._do("txn add", lambda c: c.add_partitions_req(add), place)
        names = self._names(place)[:2]
        dynamic = t.AddDynamicPartitions(txn, write_id, place.database, place.table, names, t.DataOperationType.INSERT)
        self._do("txn dynamic", lambda c: c.add_dynamic_partitions(dynamic), place)
        self._statistics(place, write_id, lists)
        table = self._get(place)
        if table is not None and self._chance.random() < 0.5:
            table.parameters["txn"] = str(txn)
            alter = t.AlterTableRequest("hive", place.database, place.table, table, None, write_id, lists)
            self._do("txn alter", lambda c: c.alter_table_req(alter), place)
        self._open.append((txn, place, write_id))
        while len(self._open) > 2 or (self._open and self._chance.random() < 0.5):
            self._end(*self._open.pop(self._chance.randrange(len(self._open))))

    def _end(self, txn: int, place: Place, write_id: int) -> None:
        if self._chance.random() < 0.3:
            self._do(f"abort {write_id}", lambda c: c.abort_txn(t.AbortTxnRequest(txn)), place)
        else:
            self._do(f"commit {write_id}", lambda c: c.commit_txn(t.CommitTxnRequest(txn)), place)
        self._there(place)

    def _statistics(self, place: Place, write_id: int = -1, lists: str | None = None) -> None:
        number, names = self._next(), self._names(place)
        name = self._chance.choice(names) if names else None
        made = statistics(place, name, self._chance.choice([("a",), ("a", "b")]), number, "hive")
        request = t.SetPartitionsStatsRequest([made], self._chance.random() < 0.3, write_id, lists, "hive")
        if name is None:
            self._do("statistics", lambda c: c.update_table_column_statistics_req(request), place)
        elif self._chance.random() < 0.5:
            self._do(f"statistics {name}", lambda c: c.update_partition_column_statistics_req(request), place)
        else:
            self._do(f"set_aggr {name}", lambda c: c.set_aggr_stats_for(request), place)

    def s_statistics_then_alter(self, place: Place) -> None:
        """Statistics, then an alter of a client that does not know them, or that changes the columns."""
        if self._there(place) is None:
            return
        self._statistics(place)
        table, one = self._get(place), self._partition(place)
        if table is None:
            return
        match self._chance.choice(["table", "partition", "columns", "rename column", "delete"]):
            case "table":
                table.parameters = {k: v for k, v in table.parameters.items() if k != "COLUMN_STATS_ACCURATE"}
                self._do("alter without", lambda c: c.alter_table(place.sent, place.table, table), place)
            case "partition" if one is not None:
                one.parameters = {"n": str(self._next())}
                self._do("alter part without", lambda c: c.alter_partition(place.sent, place.table, one), place)
            case "columns":
                table.sd.cols = [*table.sd.cols[:2], t.FieldSchema(f"c{self._next()}", "int", None)]
                context = t.EnvironmentContext({"CASCADE": "true"})
                self._do(
                    "cascade",
                    lambda c: c.alter_table_with_environment_context(place.sent, place.table, table, context),
                    place,
                )
            case "rename column":
                table.sd.cols[0].name = "a" if table.sd.cols[0].name != "a" else "renamed"
                self._do("rename column", lambda c: c.alter_table(place.sent, place.table, table), place)
            case _:
                self._do(
                    "delete statistics",
                    lambda c: c.delete_table_column_statistics(place.sent, place.table, "a", "hive"),
                    place,
                )

    def s_truncate(self, place: Place) -> None:
        if self._there(place) is None:
            return
        names = self._names(place)
        chosen = self._chance.sample(names, min(2, len(names))) if names and self._chance.random() < 0.7 else None
        if self._chance.random() < 0.5:
            self._do(f"truncate {chosen}", lambda c: c.truncate_table(place.sent, place.table, chosen), place)
        else:
            request = t.TruncateTableRequest(place.sent, place.table, chosen)
            self._do(f"truncate_req {chosen}", lambda c: c.truncate_table_req(request), place)

    def s_constraints(self, place: Place) -> None:
        """A primary key, a foreign key to it from another of its tables, and a rename or drop of either."""
        child = Place(place.catalog, place.database, "b" if place.table == "a" else "a")
        if self._there(place) is None or self._there(child) is None:
            return
        name = f"pk{self.number}_{self._next()}"
        primary = t.SQLPrimaryKey(place.database, place.table, "a", 1, name, True, False, True, catName=place.catalog)
        self._do("primary key", lambda c: c.add_primary_key(t.AddPrimaryKeyRequest([primary])), place)
        keys = outcome(
            lambda c: c.get_primary_keys(t.PrimaryKeysRequest(place.database, place.table, place.catalog)),
            self._client.connections[ORACLE],
        )
        found = getattr(keys, "primaryKeys", None)
        foreign = t.SQLForeignKey(
            *(place.database, place.table, "a", child.database, child.table, "b", 1, 0, 0),
            f"fk{self.number}_{self._next()}",
            found[0].pk_name if found else None,
            *(True, False, True, place.catalog),
        )
        self._do("foreign key", lambda c: c.add_foreign_key(t.AddForeignKeyRequest([foreign])), child)
        self._look(place, self._chance.randrange(self._servers))
        common = (place.catalog, place.database, place.table, "b")
        match self._chance.choice(["drop pk", "drop fk", "not null", "drop child", "rename column"]):
            case "drop pk" if found:
                drop = t.DropConstraintRequest(place.database, place.table, found[0].pk_name, place.catalog)
                self._do("drop pk", lambda c: c.drop_constraint(drop), place)
            case "drop fk":
                drop = t.DropConstraintRequest(child.database, child.table, foreign.fk_name, child.catalog)
                self._do("drop fk", lambda c: c.drop_constraint(drop), child)
            case "not null":
                one = t.SQLNotNullConstraint(*common, f"nn{self.number}_{self._next()}", True, False, True)
                self._do("not null", lambda c: c.add_not_null_constraint(t.AddNotNullConstraintRequest([one])), place)
            case "drop child":
                self._do("drop child", lambda c: c.drop_table(child.sent, child.table, False), child)
            case _:
                return
        self._look(place, self._chance.randrange(self._servers))
        self._look(child, self._chance.randrange(self._servers))

    def s_functions(self, place: Place) -> None:
        name = self._chance.choice("fgh")
        made = t.Function(
            *(name, place.database, f"n{self._next()}", "o", t.PrincipalType.USER, 1, t.FunctionType.JAVA),
            [t.ResourceUri(t.ResourceType.JAR, f"file:/{self._next()}")],
            place.catalog,
        )
        kinds: dict[str, Ask] = {
            "create_function": lambda c: c.create_function(made),
            "alter_function": lambda c: c.alter_function(place.sent, name, made),
            "drop_function": lambda c: c.drop_function(place.sent, name),
        }
        found = outcome(lambda c: c.get_function(place.sent, name), self._client.connections[ORACLE])
        is_there = isinstance(found, t.Function)
        kind = self._chance.choice(["alter_function", "drop_function"] if is_there else ["create_function"])
        self._do(f"{kind} {name}", kinds[kind], place)

    def s_privileges(self, place: Place) -> None:
        if self._there(place) is None:
            return
        one = self._partition(place)
        kind = self._chance.choice([t.HiveObjectType.TABLE, t.HiveObjectType.DATABASE, t.HiveObjectType.COLUMN])
        reference = t.HiveObjectRef(kind, place.database, place.table, None, None, place.catalog)
        if kind == t.HiveObjectType.DATABASE:
            reference.objectName = None
        if kind == t.HiveObjectType.COLUMN:
            reference.columnName = "a"
            reference.partValues = list(one.values) if one and self._chance.random() < 0.5 else None
        grant = t.PrivilegeGrantInfo(self._chance.choice(["SELECT", "INSERT"]), 1, "g", t.PrincipalType.USER, False)
        right = t.HiveObjectPrivilege(reference, "u", t.PrincipalType.USER, grant, "SQL")
        of = self._chance.choice([t.GrantRevokeType.GRANT, t.GrantRevokeType.GRANT, t.GrantRevokeType.REVOKE])
        request = t.GrantRevokePrivilegeRequest(of, t.PrivilegeBag([right]), False)
        self._do(f"privilege {of} {kind}", lambda c: c.grant_revoke_privileges(request), place)

    def s_marks(self, place: Place) -> None:
        one = self._partition(place)
        if one is None:
            return
        keys = ("p", "q")[: len(one.values)]
        spec = dict(zip(keys, one.values, strict=True))
        done = t.PartitionEventType.LOAD_DONE
        self._do("mark", lambda c: c.markPartitionForEvent(place.sent, place.table, spec, done), place)
        self.compare("isMarked", lambda c: c.isPartitionMarkedForEvent(place.sent, place.table, spec, done))

    # Iceberg

    def s_iceberg_commit(self, place: Place) -> None:
        """Compare and set; then another writer, at the other server, which expects the old pointer."""
        place = Place("hive", place.database, "ice")
        table = self._there(place)
        if table is None:
            return
        part = t.LockComponent(t.LockType.EXCLUSIVE, t.LockLevel.TABLE, place.database, place.table)
        held = self._do("lock", lambda c: c.lock(t.LockRequest([part], None, "u", "h")))
        old = table.parameters.get("metadata_location")
        for _ in range(2):
            table.parameters["metadata_location"] = f"file:/m{self._next()}"
            table.parameters["previous_metadata_location"] = old or ""
            table.sd.cols = [*table.sd.cols[:2], t.FieldSchema(f"c{self._next()}", "int", None)]
            context = t.EnvironmentContext(
                {"expected_parameter_key": "metadata_location", "expected_parameter_value": old or ""}
                if old
                else {"DO_NOT_UPDATE_STATS": "true"}
            )
            self._do(
                f"commit after {old}",
                lambda c, x=context: c.alter_table_with_environment_context(place.sent, place.table, table, x),
                place,
            )
        if isinstance(held, t.LockResponse):
            self._do("unlock", lambda c: c.unlock(t.UnlockRequest(held.lockid)), place)

    def s_view(self, place: Place) -> None:
        """A view or a materialized view of its tables: created, altered, dropped."""
        name = self._chance.choice(["view", "mv"])
        target = Place("hive", place.database, name)
        if self._get(target) is None:
            table = self._table(target, 0)
            table.tableType = "VIRTUAL_VIEW" if name == "view" else "MATERIALIZED_VIEW"
            table.parameters.pop("EXTERNAL")
            table.viewOriginalText = table.viewExpandedText = f"select {self._next()}"
            if name == "mv":
                table.rewriteEnabled = True
                used = {f"{place.database}.acid"}
                table.creationMetadata = t.CreationMetadata("hive", place.database, name, used)
            self._do("create view", lambda c: c.create_table(table), target)
        elif self._chance.random() < 0.3:
            self._do("drop view", lambda c: c.drop_table(target.sent, target.table, False), target)
        else:
            table = self._get(target)
            assert table is not None
            table.viewOriginalText = table.viewExpandedText = f"select {self._next()}"
            self._do("alter view", lambda c: c.alter_table(target.sent, target.table, table), target)

    def s_catalog(self, place: Place) -> None:
        """What all clients of the other catalog see."""
        number = self._next()

        def go(c: Connection) -> None:
            found = c.get_catalog(t.GetCatalogRequest(OTHER_CATALOG)).catalog
            found.description = f"{self.number} {number}"
            c.alter_catalog(t.AlterCatalogRequest(OTHER_CATALOG, found))

        if self._chance.random() < 0.2:
            self._do("alter_catalog", go, place)
