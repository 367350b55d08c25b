"""``verify``: compares memory with the database."""

from __future__ import annotations

from hms_cache.admin.commands.subject import CommandParts, CommandResult, Subject
from hms_cache.cache.verification.invariants import InvariantViolation
from hms_cache.cache.verification.verify import verify as compare
from hms_cache.metrics.operations import Operation

#: Maximum number of detailed differences: one is enough to act on, and each may list all columns of a table.
_MAX_DETAILS = 50
_LONGEST_DETAIL = 2_000


def verify(
    parts: CommandParts, subject: Subject, operation: Operation, *, sample: int | None = None, seed: int | None = None
) -> CommandResult:
    """Compares the subject's entries with the database, all of them or ``sample`` tables and databases. Changes
    nothing.

    Not ``ok`` if there is a difference, which never happens without a defect. Raises `DatabaseUnavailableError`.
    """
    shared = parts.cache.shared
    with shared.view():
        keys = subject.held_tables(shared)
        databases = subject.held_databases(shared)
        catalogs = list(shared.catalogs) if subject.database is None else []

    def note(done: int, total: int) -> bool:
        operation.done, operation.total = done, total
        return not operation.cancelled.is_set()

    try:
        report = compare(
            shared,
            parts.store,
            parts.cache.loader,
            sample=sample,
            seed=seed,
            keys=keys,
            databases=databases,
            catalogs=catalogs,
            replies=parts.kept_replies,
            progress=note,
        )
    except InvariantViolation as violation:
        lines = str(violation).splitlines()
        return CommandResult(False, "the cache contradicts itself", {"differences": len(lines)}, _short(lines))
    numbers = {**report.compared, "undecided": report.undecided, "differences": len(report.differences)}
    compared = ", ".join(f"{count} {what}" for what, count in report.compared.items())
    text = f"compared {compared}: {len(report.differences)} differences"
    if report.undecided:
        text += f"; {report.undecided} changed meanwhile or are no longer cached"
    if operation.cancelled.is_set():
        return CommandResult(False, f"given up; {text}", numbers, _short(report.differences))
    return CommandResult(not report.differences, text, numbers, _short(report.differences))


def _short(lines: list[str]) -> tuple[str, ...]:
    shown = [line if len(line) <= _LONGEST_DETAIL else f"{line[:_LONGEST_DETAIL]}…" for line in lines[:_MAX_DETAILS]]
    if len(lines) > len(shown):
        shown.append(f"and {len(lines) - len(shown)} more")
    return tuple(shown)
