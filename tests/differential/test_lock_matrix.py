"""Locks are granted, made to wait and refused as in Hive 4.0.1."""

from __future__ import annotations

import pytest

from tests.differential.lock_pairs import answer_of, pairs
from tests.differential.metastores import Sides

pytestmark = [pytest.mark.java, pytest.mark.mariadb, pytest.mark.soak, pytest.mark.long]


def test_every_pair_of_locks_is_answered_alike(sides: Sides) -> None:
    different, answers = [], set()
    for held, requested in pairs():
        java, ours = answer_of(sides.java, held, requested), answer_of(sides.ours, held, requested)
        answers.add(java)
        if java != ours:
            different.append(f"{held}, then {requested}: java {java}, ours {ours}")
    assert not different, "\n".join(different)
    assert {"ACQUIRED then ACQUIRED", "ACQUIRED then WAITING", "ACQUIRED then NOT_ACQUIRED"} <= answers
