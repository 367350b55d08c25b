"""Values: objects that never change after construction and are equal if their fields are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: type[T]) -> type[T]:
    """Makes the class an immutable dataclass with slots instead of a dictionary."""
    return dataclass(frozen=True, slots=True)(cls)
