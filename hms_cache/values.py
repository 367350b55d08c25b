"""Values: objects that are made whole, never change, and are equal when their fields are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """Makes a dataclass of a class that nobody can assign to, with slots in place of a dictionary."""
    return dataclass(frozen=True, slots=True)(cls)
