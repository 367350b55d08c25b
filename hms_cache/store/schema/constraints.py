"""Primary and foreign keys, unique, not-null, default and check constraints of Hive tables."""

from __future__ import annotations

from hms_cache.store.schema.column_types import BIGINT, SMALLINT, WIDE_INTEGER
from hms_cache.store.schema.definition import all_required, column, columns, required, table
from hms_cache.store.schema.keys import index, primary_key
from hms_cache.store.schema.text_types import string

KEY_CONSTRAINTS = table(
    "KEY_CONSTRAINTS",
    column("CHILD_CD_ID", BIGINT),
    column("CHILD_INTEGER_IDX", WIDE_INTEGER),
    *columns(BIGINT, "CHILD_TBL_ID", "PARENT_CD_ID"),
    required("PARENT_INTEGER_IDX", WIDE_INTEGER),
    *all_required(BIGINT, "PARENT_TBL_ID", "POSITION"),
    required("CONSTRAINT_NAME", string(400)),
    required("CONSTRAINT_TYPE", SMALLINT),
    *columns(SMALLINT, "UPDATE_RULE", "DELETE_RULE"),
    required("ENABLE_VALIDATE_RELY", SMALLINT),
    column("DEFAULT_VALUE", string(400)),
    primary_key("PARENT_TBL_ID", "CONSTRAINT_NAME", "POSITION", name="constraints_pk"),
    index("CONSTRAINTS_CONSTRAINT_TYPE_INDEX", "CONSTRAINT_TYPE"),
    index("CONSTRAINTS_PARENT_TABLE_ID_INDEX", "PARENT_TBL_ID", on="mysql"),
    index("CONSTRAINTS_PARENT_TBLID_INDEX", "PARENT_TBL_ID", on="postgresql"),
)
