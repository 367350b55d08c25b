"""Delegation tokens and the keys that sign them."""

from __future__ import annotations

from hms_cache.store.schema.column_types import INTEGER, string
from hms_cache.store.schema.definition import column, primary_key, table

MASTER_KEYS = table(
    "MASTER_KEYS",
    column("KEY_ID", INTEGER, nullable=False, autoincrement=True),
    column("MASTER_KEY", string(767)),
    primary_key("KEY_ID"),
)

DELEGATION_TOKENS = table(
    "DELEGATION_TOKENS",
    column("TOKEN_IDENT", string(767), nullable=False),
    column("TOKEN", string(767)),
    primary_key("TOKEN_IDENT"),
)
