"""Each text in each reading request has characters that a database of Hive's own script cannot store.

No name there has such a character: the reply is that nothing exists, never that the database refuses it.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from thrift.Thrift import TException, TType

from hms_cache.app.service import Service
from hms_cache.thrift_gen.hive_metastore.ttypes import Database
from hms_cache.wire import METHODS
from tests.app.test_service import configured
from tests.conftest import ServerLookup
from tests.databases import DatabaseServer
from tests.hostile.every_request import READS
from tests.hostile.request_places import places_of, put
from tests.hostile.test_long_lists import client, filled, make_table
from tests.store.schema.distribution import load_hive_schema

TEXTS = ("\N{CYRILLIC SMALL LETTER ZHE}", "\N{GRINNING FACE}x")


@pytest.mark.soak
@pytest.mark.java
@pytest.mark.mariadb
def test_no_read_is_refused(database_servers: ServerLookup, tmp_path: Path) -> None:
    server = database_servers("mariadb")
    assert isinstance(server, DatabaseServer)
    url = server.create_database()
    load_hive_schema(url, "4.0.1")
    service = Service(configured(tmp_path, database__url=url))
    uri = service.start()
    refused = []
    try:
        with client(uri) as metastore:
            metastore.create_database(Database(name="d"))
        make_table(uri)
        for method in (*READS, "partition_name_has_valid_characters", "find_package", "find_columns_with_stats"):
            kind = METHODS[method].args_class
            for way, _ in places_of(kind, {TType.STRING}):
                for given in TEXTS:
                    arguments = put(filled(kind, (), 1), way, given)
                    values = [getattr(arguments, field[2]) for field in kind.thrift_spec if field]
                    try:
                        with client(uri) as metastore:
                            getattr(metastore, method)(*values)
                    except TException as error:
                        told = str(getattr(error, "message", error))
                        if "refuses" in told or "Internal error" in told:
                            refused.append(f"{method} {'.'.join(map(str, way))}: {told[:200]}")
    finally:
        service.stop()
        server.drop_database(url)
    assert not refused, "\n".join(refused)
