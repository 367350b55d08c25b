"""``sync``: waits until this server has applied an event."""

from __future__ import annotations

from hms_cache.admin.commands.subject import CommandParts, CommandResult, Subject
from hms_cache.errors import DatabaseUnavailableError
from hms_cache.metrics.operations import Operation

#: Duration of one attempt: short, so that a cancelled wait ends and progress is shown.
_ATTEMPT_S = 1.0

#: Pause after an attempt that failed at once (the poller is paused, the database is unavailable).
_PAUSE_S = 0.1


def sync(
    parts: CommandParts, subject: Subject, operation: Operation, *, event_id: int | None, wait_s: float
) -> CommandResult:
    """Waits at most ``wait_s`` until everything up to ``event_id`` is applied; by default, the last event at this
    moment.

    If the subject is a table, all its changes that were committed before the command, through any server, are applied
    then. After a timeout the result is not ``ok`` and states the reason.
    """
    clock = parts.clock
    deadline_s = clock.monotonic_s() + wait_s
    target = event_id
    problem = ""
    while True:
        try:
            if target is None:
                target = parts.store.current_event_id()
        except DatabaseUnavailableError as error:
            problem = f"the database does not answer: {error}"
        remaining_s = max(0.0, deadline_s - clock.monotonic_s())
        if target is not None:
            operation.done, operation.total = max(0, parts.poller.applied_position), target
            if parts.poller.ensure_applied(target, min(remaining_s, _ATTEMPT_S)):
                operation.done = target
                return _reached(parts, subject, target)
            problem = _why_not(parts, target)
        operation.note = problem
        if remaining_s <= 0 or operation.cancelled.is_set():
            numbers = {"position": parts.poller.applied_position} | ({} if target is None else {"event_id": target})
            return CommandResult(False, f"not in sync after {wait_s:g} s: {problem}", numbers)
        operation.cancelled.wait(min(remaining_s, _PAUSE_S))


def _reached(parts: CommandParts, subject: Subject, target: int) -> CommandResult:
    text = f"in sync: every event up to {target} is applied"
    if subject.table is not None:
        with parts.cache.shared.view():
            cached = subject.table in parts.cache.shared.tables
        state = "cached in its current state" if cached else "not cached, and will be loaded when it is requested"
        text += f"; {subject} is {state}"
    return CommandResult(True, text, {"event_id": target, "position": parts.poller.applied_position})


def _why_not(parts: CommandParts, target: int) -> str:
    report, numbers = parts.poller.status_report(), parts.poller.statistics()
    text = f"event {numbers.position} is applied, {target} is awaited; the poller is {report.status.value}"
    if numbers.consecutive_fetch_failures:
        return f"{text}, but the log cannot be read: {numbers.last_fetch_error}"
    return f"{text} ({report.reason})"
