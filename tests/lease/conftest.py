"""Fixtures of the lease tests."""

from __future__ import annotations

from tests.consistency.conftest import initialize

__all__ = ["initialize"]
