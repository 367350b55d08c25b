"""Tables that an alter converts to full ACID: their files and their write ids.

Facts: `TransactionalValidationListener` (Hive 4.0.1).
"""

from __future__ import annotations

import re

from sqlalchemy import Connection, select

from hms_cache.store.engine.context import StoreContext
from hms_cache.store.file_access import FileAccess
from hms_cache.store.rows.table_rows import TableRow
from hms_cache.store.schema import NEXT_WRITE_ID, PARTITIONS, SDS
from hms_cache.store.tables.transactional import FIRST_WRITE_ID_AFTER_CONVERSION
from hms_cache.store.write_ids.allocation import seed_write_id
from hms_cache.thrift_gen.hive_metastore.ttypes import MetaException, SeedTableWriteIdsRequest, Table

_FILE_OF_HIVE = re.compile(r"[0-9]+_[0-9]+(_copy_[0-9]+)?")
"""Names of files that Hive itself writes into tables without transactions."""


def require_files_of_hive(context: StoreContext, connection: Connection, row: TableRow, new: Table) -> None:
    """Raises MetaException if the table has files with other names than Hive's, such as Spark's.

    Hive's readers and compactor of transactional tables derive the bucket from the name: a major compaction omits other
    files, and the cleaner then deletes them. Files outside the allowed locations are not checked.
    """
    if not context.warehouse.manages_files:
        return
    if row.table.partitionKeys:
        statement = select(SDS.c.LOCATION).join(PARTITIONS, PARTITIONS.c.SD_ID == SDS.c.SD_ID)
        texts = connection.execute(statement.where(PARTITIONS.c.TBL_ID == row.table_id)).scalars().all()
    else:
        texts = [new.sd.location]
    files = FileAccess(context, connection)
    files.check_texts(texts)
    places = [place for text in dict.fromkeys(texts) if (place := files.allow_text(text)) is not None]
    found = context.warehouse.unexpected_file(places, _FILE_OF_HIVE)
    if found is not None:
        raise MetaException(
            f"Unexpected data file name format.  Cannot convert {new.dbName}.{new.tableName} to transactional table.  "
            f"File: {found}"
        )


def begin_write_ids(connection: Connection, new: Table) -> None:
    """Files of a converted table count as written before all of its write ids."""
    ids = NEXT_WRITE_ID.c
    found = connection.execute(
        select(ids.NWI_NEXT).where(ids.NWI_DATABASE == new.dbName, ids.NWI_TABLE == new.tableName)
    ).first()
    if found is None:
        seed_write_id(connection, SeedTableWriteIdsRequest(new.dbName, new.tableName, FIRST_WRITE_ID_AFTER_CONVERSION))
