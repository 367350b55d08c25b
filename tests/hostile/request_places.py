"""Finds the values of a type in requests of the protocol, at any depth, and replaces them."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any

from thrift.Thrift import TType

Way = tuple[Any, ...]
"""The names of fields that lead to a value; 0 is each element of a list, "key" and "value" those of a map."""


def places_of(kind: Any, types: Container[int], inside: tuple[Any, ...] = ()) -> Iterator[tuple[Way, int]]:
    """Where a struct has values of these types."""
    if kind in inside or len(inside) > 4:
        return
    for field in filter(None, kind.thrift_spec):
        yield from _places_in(field[1], field[3], types, (*inside, kind), (field[2],))


def fields_of(kind: Any, inside: tuple[Any, ...] = ()) -> Iterator[tuple[Way, int]]:
    """Returns each field of a struct and of nested structs, with its type."""
    if kind in inside or len(inside) > 4:
        return
    for field in filter(None, kind.thrift_spec):
        yield (field[2],), field[1]
        for of, way in _structs_in(field[1], field[3]):
            yield from (((field[2], *way, *rest), found) for rest, found in fields_of(of, (*inside, kind)))


def _structs_in(type_: int, of: Any) -> Iterator[tuple[Any, Way]]:
    """The struct in a field, or in its elements and values."""
    if type_ == TType.STRUCT:
        yield of[0], ()
    elif type_ in (TType.LIST, TType.SET):
        yield from ((found, (0, *rest)) for found, rest in _structs_in(of[0], of[1]))
    elif type_ == TType.MAP:
        yield from ((found, ("value", *rest)) for found, rest in _structs_in(of[2], of[3]))


def _places_in(
    type_: int, of: Any, types: Container[int], inside: tuple[Any, ...], way: Way
) -> Iterator[tuple[Way, int]]:
    if type_ in types and of != "BINARY":
        yield way, type_
    elif type_ == TType.STRUCT:
        yield from (((*way, *rest), found) for rest, found in places_of(of[0], types, inside))
    elif type_ in (TType.LIST, TType.SET):
        yield from _places_in(of[0], of[1], types, inside, (*way, 0))
    elif type_ == TType.MAP:
        yield from _places_in(of[0], of[1], types, inside, (*way, "key"))
        yield from _places_in(of[2], of[3], types, inside, (*way, "value"))


def put(value: Any, way: Way, new: Any) -> Any:
    """Returns the value with the new one at its place; missing fields stay unset."""
    if not way:
        return new
    if value is None:
        return None
    if isinstance(value, dict) and way[0] == "key":
        return {put(key, way[1:], new): each for key, each in value.items()}
    if isinstance(value, dict):
        return {key: put(each, way[1:], new) for key, each in value.items()}
    if isinstance(value, list | set | tuple):
        return type(value)(put(each, way[1:], new) for each in value)
    setattr(value, way[0], put(getattr(value, way[0]), way[1:], new))
    return value
