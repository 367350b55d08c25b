"""A database with the schema of this version."""

from __future__ import annotations

from tests.consistency.conftest import initialize

__all__ = ["initialize"]
