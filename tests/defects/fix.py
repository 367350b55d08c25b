"""Fixes of known defects, and how each is taken out of a copy of the program.

A fix that nobody notices when it is gone is not guarded: `test_fixes.py` takes each out once and runs the tests that
are to notice. A fix that has moved makes its row fail, so that the row moves with it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fix:
    """One fix, as the text that makes it and what stood there before, or nearly."""

    number: int
    """Of the defect, in docs/evidence/defects.md. Some took several fixes."""
    name: str
    defect: str
    """What a user met without it."""
    file: str
    fixed: str
    """Occurs once in the file."""
    broken: str
    noticed_by: tuple[str, ...]
    """Tests that fail without it: arguments of pytest. At least one fails; each file has tests that pass with it."""
