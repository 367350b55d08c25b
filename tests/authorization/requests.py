"""Random requests of every method, with names in every field that can hold one."""

from __future__ import annotations

import random
from typing import Any

from thrift.Thrift import TType

from hms_cache.server.authorization.objects import CATALOGS, PAIRS, REFERENCED, TABLES, role_of
from hms_cache.wire import METHODS

DATABASES = ("d1", "d2", "D1 ")
_IN_PAIRS = {name: place for pair in (*PAIRS, REFERENCED) for place, name in enumerate(pair)}


class Names:
    """The values of fields for names: always the same object, or any."""

    def __init__(self, chance: random.Random, one: tuple[str, str, str] | None = None) -> None:
        self.chance = chance
        self.one = one

    def catalog(self) -> str | None:
        return self.one[0] if self.one else self.chance.choice([None, "", "hive", "c2"])

    def database(self, *, plain: bool = False) -> str | None:
        if self.one:
            return self.one[1] if plain or self.one[0] == "hive" else f"@{self.one[0]}#{self.one[1]}"
        return self.chance.choice([None, *DATABASES, "@c3#d3"])

    def table(self) -> str | None:
        return self.one[2] if self.one else self.chance.choice([None, "t1", "t2", "T3", "t1.a"])


def arguments_of(method: str, names: Names) -> Any:
    """An argument struct."""
    return _filled(METHODS[method].args_class, names, 0)


def _filled(kind: type[Any], names: Names, depth: int) -> Any:
    made = kind()
    for field in filter(None, kind.thrift_spec):
        setattr(made, field[2], _value(kind.__name__, field[2], field[1], field[3], names, depth))
    return made


def _value(struct: str, name: str, kind: int, arguments: Any, names: Names, depth: int) -> Any:
    if kind == TType.STRING:
        return _text(struct, name, names)
    if kind == TType.STRUCT:
        if depth > 3 or (depth and names.one is None and names.chance.random() < 0.3):
            return None
        return _filled(arguments[0], names, depth + 1)
    if kind in (TType.LIST, TType.SET):
        count = 1 if names.one else names.chance.choice([1, 1, 2])
        found = [_value(struct, name, arguments[0], arguments[1], names, depth) for _ in range(count)]
        found = [one for one in found if one is not None]
        return set(found) if kind == TType.SET else found
    if kind == TType.MAP:
        return {}
    if kind == TType.BOOL:
        return False
    return 1.0 if kind == TType.DOUBLE else 1


def _text(struct: str, name: str, names: Names) -> str | None:
    place = _IN_PAIRS.get(name)
    if place is not None:
        return names.table() if place else names.database()
    if name in ("fullTableNames", "tablesUsed"):
        return f"{(names.database(plain=True) or 'd1').strip()}.{names.table() or 't1'}"
    role = role_of(struct, name)
    if role is None:
        return None if name in ("replPolicy", "validWriteIdList") else "x"
    if role is CATALOGS:
        return names.catalog()
    return names.table() if role is TABLES else names.database(plain=struct == "LockComponent")
