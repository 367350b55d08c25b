"""Types of principals as the database spells them."""

from __future__ import annotations

from hms_cache.metadata.enumerations import known
from hms_cache.thrift_gen.hive_metastore.ttypes import PrincipalType

USER = "USER"


def principal_type_name(value: int | None) -> str | None:
    """`USER`, `ROLE` or `GROUP`; None for an unknown number, as in Java."""
    name: str | None = None if value is None else PrincipalType._VALUES_TO_NAMES.get(value)
    return name


def principal_type(value: int | None) -> int | None:
    """The type if the number is valid, otherwise None."""
    return known(PrincipalType, value)
