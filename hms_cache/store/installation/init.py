"""``hms-cache schema init``: creates Hive 4.0's schema with the rows that Hive's own scripts and servers insert."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection, Table, func, insert, select, text, update

from hms_cache.errors import SchemaError
from hms_cache.store.engine.database import Database
from hms_cache.store.engine.errors import DatabaseUnavailable
from hms_cache.store.engine.features import SchemaFeatures, read_features
from hms_cache.store.engine.sequences import allocate_ids
from hms_cache.store.installation.foreign_key_indexes import create_indexes
from hms_cache.store.installation.unversioned import require_room
from hms_cache.store.schema import (
    CTLGS,
    DBS,
    GLOBAL_PRIVS,
    METADATA,
    NEXT_COMPACTION_QUEUE_ID,
    NEXT_LOCK_ID,
    NOTIFICATION_SEQUENCE,
    ROLES,
    SEQUENCE_TABLE,
    TXN_LOCK_TBL,
    TXNS,
    VERSION,
)

#: The version of Hive 4.0.0's and 4.0.1's scripts, which share one schema.
SCHEMA_VERSION = "4.0.0"

_MODEL = "org.apache.hadoop.hive.metastore.model."

#: The rows of Hive's script. The version comes last.
FIRST_ROWS: tuple[tuple[Table, list[dict[str, Any]]], ...] = (
    (
        CTLGS,
        [
            {
                "CTLG_ID": 1,
                "NAME": "hive",
                "DESC": "Default catalog for Hive",
                "LOCATION_URI": "TBD",
                "CREATE_TIME": None,
            }
        ],
    ),
    (
        SEQUENCE_TABLE,
        [
            {"SEQUENCE_NAME": f"{_MODEL}MNotificationLog", "NEXT_VAL": 1},
            {"SEQUENCE_NAME": f"{_MODEL}MTxnWriteNotificationLog", "NEXT_VAL": 1},
        ],
    ),
    (NOTIFICATION_SEQUENCE, [{"NNI_ID": 1, "NEXT_EVENT_ID": 1}]),
    (
        TXNS,
        [{"TXN_ID": 0, "TXN_STATE": "c", "TXN_STARTED": 0, "TXN_LAST_HEARTBEAT": 0, "TXN_USER": "", "TXN_HOST": ""}],
    ),
    (TXN_LOCK_TBL, [{"TXN_LOCK": 1}]),
    (NEXT_LOCK_ID, [{"NL_NEXT": 1}]),
    (NEXT_COMPACTION_QUEUE_ID, [{"NCQ_NEXT": 1}]),
    (
        VERSION,
        [{"VER_ID": 1, "SCHEMA_VERSION": SCHEMA_VERSION, "VERSION_COMMENT": f"Hive release version {SCHEMA_VERSION}"}],
    ),
)

#: Longest wait for another server that is creating the schema. This takes a second, or ten on a slow disk.
_INIT_LOCK_WAIT_S = 60

_INIT_LOCK_NAME = "hms-cache schema"
_INIT_LOCK_NUMBER = 0x686D7363


def init_schema(database: Database) -> None:
    """Creates Hive 4.0's schema, its first rows, and the indexes of foreign keys that Hive's script omits.

    Completes an earlier attempt that was interrupted. Servers that start at the same time do this one after another;
    the later ones find the schema and return. The version row is inserted last, so a database that has one is complete.
    On SQLite and PostgreSQL everything is one transaction.

    :raises SchemaError: the database has a metastore schema of another or an unknown version.
    :raises DatabaseUnavailable: the database does not answer, or another server takes too long to create the schema.
    """
    with database.writing() as connection, exclusive_schema(database, connection):
        version = read_features(connection).version
        if version is None:
            require_room(connection)
        elif version != SCHEMA_VERSION:
            raise SchemaError(
                f"the database has a metastore schema of version {version}",
                remedy="it can be served as it is; see hms-cache schema check",
            )
        METADATA.create_all(connection)
        create_indexes(connection)
        if version is None:
            insert_first_rows(connection)
        connection.commit()
    database.forget_features()


def insert_first_rows(connection: Connection) -> None:
    """Inserts the rows of Hive's script, the version last. Tables that have rows are skipped."""
    for table, rows in FIRST_ROWS:
        if table is VERSION or connection.execute(select(func.count()).select_from(table)).scalar_one() == 0:
            connection.execute(insert(table), rows)


@contextmanager
def exclusive_schema(database: Database, connection: Connection) -> Iterator[None]:
    """Prevents other servers from creating the schema meanwhile. On SQLite the write transaction does that."""
    if database.dialect == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": _INIT_LOCK_NUMBER})
    if database.dialect != "mysql":
        yield
        return
    requested = {"name": f"{_INIT_LOCK_NAME} {database.url.database}"[:64], "wait": _INIT_LOCK_WAIT_S}
    if connection.execute(text("SELECT GET_LOCK(:name, :wait)"), requested).scalar() != 1:
        raise DatabaseUnavailable("another server is creating the schema and does not come to an end")
    try:
        yield
    finally:
        connection.execute(text("SELECT RELEASE_LOCK(:name)"), {"name": requested["name"]})
        connection.commit()


def ensure_default_roles(connection: Connection, now_s: int) -> None:
    """Creates the roles ``admin`` (with all privileges) and ``public``, as Hive's server does when it starts.

    Existing roles are not changed. In the caller's transaction.

    :param now_s: creation time, epoch seconds.
    """
    names = select(ROLES.c.ROLE_NAME)
    if not {"admin", "public"} <= set(connection.execute(names).scalars()):
        ids = iter(allocate_ids(connection, "MRole", 2))
        # The sequence's lock serializes servers that start at the same time: another one may have created them.
        present = set(connection.execute(names).scalars())
        for role in ("admin", "public"):
            if role not in present:
                connection.execute(
                    insert(ROLES).values(ROLE_ID=next(ids), CREATE_TIME=now_s, OWNER_NAME=role, ROLE_NAME=role)
                )
    grants = GLOBAL_PRIVS.c
    granted = select(grants.USER_GRANT_ID).where(grants.PRINCIPAL_NAME == "admin", grants.PRINCIPAL_TYPE == "ROLE")
    if connection.execute(granted).first() is None:
        grant_id = allocate_ids(connection, "MGlobalPrivilege", 1)[0]
        if connection.execute(granted).first() is not None:
            return
        connection.execute(
            insert(GLOBAL_PRIVS).values(
                USER_GRANT_ID=grant_id,
                CREATE_TIME=now_s,
                GRANT_OPTION=1,
                GRANTOR="admin",
                GRANTOR_TYPE="ROLE",
                PRINCIPAL_NAME="admin",
                PRINCIPAL_TYPE="ROLE",
                USER_PRIV="All",
                AUTHORIZER="SQL",
            )
        )


def ensure_default_database(
    connection: Connection,
    warehouse_uri: str,
    now_s: int,
    features: SchemaFeatures | None = None,
    *,
    external_uri: str = "",
) -> bool:
    """Creates the database ``default`` of catalog ``hive`` at the warehouse directory, as Hive's server does when it
    starts.

    If external tables have a directory of their own, the database is there, but its managed tables are in the
    warehouse. The catalog's own location, ``TBD`` in the script, becomes the warehouse directory as well. No event is
    logged, as in Hive. In the caller's transaction.

    :param warehouse_uri: the directory, as it is to be stored. It is not created.
    :param now_s: creation time, epoch seconds.
    :param features: for a database whose schema is not 4.0's.
    :param external_uri: the directory of external tables, if they have one.
    :return: whether the database was created.
    """
    connection.execute(
        update(CTLGS).where(CTLGS.c.NAME == "hive", CTLGS.c.LOCATION_URI == "TBD").values(LOCATION_URI=warehouse_uri)
    )
    present = select(DBS.c.DB_ID).where(DBS.c.NAME == "default", DBS.c.CTLG_NAME == "hive")
    if connection.execute(present).first() is not None:
        return False
    database_id = allocate_ids(connection, "MDatabase", 1)[0]
    # The sequence's lock serializes servers that start at the same time: another one may have created it.
    if connection.execute(present).first() is not None:
        return False
    values = {
        "DB_ID": database_id,
        "DESC": "Default Hive database",
        "DB_LOCATION_URI": external_uri or warehouse_uri,
        "NAME": "default",
        "OWNER_NAME": "public",
        "OWNER_TYPE": "ROLE",
        "CTLG_NAME": "hive",
        "CREATE_TIME": now_s,
        "TYPE": "NATIVE",
    }
    connection.execute(insert(DBS).values(values if features is None else features.writable(DBS, values)))
    return True
