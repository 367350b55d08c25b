"""Compiled statements are cached without long values of the request for which they were compiled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, literal, select

from hms_cache.store.engine.statement_cache import LONGEST_VALUES, StatementCache

LONG = "x" * (LONGEST_VALUES + 1)


@pytest.mark.parametrize(
    ("long", "short"), [(LONG, "x"), (LONG.encode(), b"x"), ([LONG], ["x"]), (["x"] * len(LONG), ["x"])]
)
def test_long_values_are_not_kept(tmp_path: Path, long: Any, short: Any) -> None:
    kept = StatementCache()
    engine = create_engine(f"sqlite:///{tmp_path / 'd'}", execution_options={"compiled_cache": kept})
    with engine.connect() as connection:

        def run(value: Any) -> None:
            if isinstance(value, list):
                value = value[:30_000]  # SQLite accepts no more
                connection.execute(select(literal(1)).where(literal("x").in_(value))).all()
            else:
                assert connection.execute(select(literal(value))).scalar() == value

        run(long)
        assert not kept
        run(short)
        assert len(kept) == 1
        run(long)
        assert len(kept) == 1
    engine.dispose()
