"""Fixes of known defects, and how to remove each from a copy of the program.

If no test fails without a fix, the fix is not guarded: `test_fixes.py` removes each once and runs the tests that must
fail. If a fix has moved, its row fails and has to be adapted.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fix:
    """One fix: its text, and approximately the text before it."""

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
