"""Delegation tokens and the keys that sign them."""

from __future__ import annotations

from hms_cache.store.schema.column_types import INTEGER
from hms_cache.store.schema.definition import column, required, table
from hms_cache.store.schema.keys import primary_key
from hms_cache.store.schema.text_types import STRING_767

MASTER_KEYS = table(
    "MASTER_KEYS",
    required("KEY_ID", INTEGER, autoincrement=True),
    column("MASTER_KEY", STRING_767),
    primary_key("KEY_ID"),
)

DELEGATION_TOKENS = table(
    "DELEGATION_TOKENS",
    required("TOKEN_IDENT", STRING_767),
    column("TOKEN", STRING_767),
    primary_key("TOKEN_IDENT"),
)
