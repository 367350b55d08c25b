"""Kinds of databases as test parameters, each with its marker."""

from __future__ import annotations

import pytest

#: Servers only: SQLite is a file of one machine.
SERVER_KINDS = [
    pytest.param("mariadb", id="mariadb", marks=pytest.mark.mariadb),
    pytest.param("postgresql", id="postgresql", marks=pytest.mark.postgresql),
]
ALL_KINDS = [pytest.param("sqlite", id="sqlite"), *SERVER_KINDS]
