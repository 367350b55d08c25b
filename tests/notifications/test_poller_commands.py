"""Each command in each status."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from hms_cache.notifications.poller import Poller
from hms_cache.notifications.poller_status import (
    LEGAL_MOVES,
    IllegalPollerCommand,
    PollerCommand,
    PollerStatus,
    next_status,
)
from hms_cache.notifications.poller_steps import StepOutcome, StepResult
from tests.notifications.conftest import Stage

ENTER: dict[PollerStatus, Callable[[Stage], None]] = {
    PollerStatus.ACTIVE: lambda stage: None,
    PollerStatus.PAUSED: lambda stage: stage.poller.pause(),
    PollerStatus.NEEDS_RESYNC: lambda stage: stage.poller.resync(),
    PollerStatus.ERROR: lambda stage: stage.poller.fail("unlogged writer"),
    PollerStatus.STOPPED: lambda stage: stage.poller.stop(),
}
GIVE: dict[PollerCommand, Callable[[Poller], None]] = {
    PollerCommand.START: lambda poller: poller.start(),
    PollerCommand.STOP: lambda poller: poller.stop(),
    PollerCommand.PAUSE: lambda poller: poller.pause(),
    PollerCommand.RESUME: lambda poller: poller.resume(),
    PollerCommand.SEEK: lambda poller: poller.seek(1),
    PollerCommand.RESYNC: lambda poller: poller.resync("asked for"),
    PollerCommand.SKIP: lambda poller: poller.skip(99),
    PollerCommand.FAIL: lambda poller: poller.fail("broken"),
}
CELLS = [(status, command) for status in ENTER for command in PollerCommand]


@pytest.mark.parametrize(("status", "command"), CELLS)
def test_cell(running: Stage, status: PollerStatus, command: PollerCommand) -> None:
    ENTER[status](running)
    assert running.poller.status is status
    running.clock.advance(5)
    before = running.poller.status_report()
    move = LEGAL_MOVES[command][status]
    if isinstance(move, PollerStatus):
        GIVE[command](running.poller)
        expected = move
        if command is PollerCommand.FAIL and status is PollerStatus.ERROR:
            assert running.poller.status_report() == before  # the first reason remains
        elif move is not status:
            assert running.poller.status_report().since_s == running.clock.epoch_s()
    elif command is PollerCommand.FAIL:
        GIVE[command](running.poller)  # comes from the sink, which cannot know; nothing happens
        assert running.poller.status_report() == before
        expected = status
    else:
        with pytest.raises(IllegalPollerCommand, match=f"cannot {command.value}: the poller is {status.value}"):
            GIVE[command](running.poller)
        assert running.poller.status_report() == before
        expected = status
    assert running.poller.status is expected
    assert running.sink.resets == []  # commands request, steps execute
    follow_up(running, expected, command)


def follow_up(running: Stage, status: PollerStatus, command: PollerCommand) -> None:
    """The status after the next step."""
    result = running.poller.step()
    if status is PollerStatus.ACTIVE:
        assert result.outcome is StepOutcome.CAUGHT_UP
    elif status is PollerStatus.NEEDS_RESYNC:
        assert result.outcome is StepOutcome.RESYNCED
        assert running.poller.status is PollerStatus.ACTIVE
        assert [position for _, position in running.sink.resets] == [1 if command is PollerCommand.SEEK else 3]
    else:
        assert result.outcome is StepOutcome.IDLE
        assert running.poller.status is status
        assert running.sink.resets == []


@pytest.mark.parametrize("command", list(PollerCommand))
def test_table_has_every_cell(command: PollerCommand) -> None:
    assert set(LEGAL_MOVES[command]) == set(PollerStatus) - {PollerStatus.DISABLED}


def test_what_may_have_passed_unseen_never_leads_straight_to_active() -> None:
    for command, moves in LEGAL_MOVES.items():
        for status, move in moves.items():
            if move is PollerStatus.ACTIVE and status is not PollerStatus.ACTIVE:
                assert (status, command) == (PollerStatus.PAUSED, PollerCommand.RESUME)


def test_next_status_tells_why_not() -> None:
    with pytest.raises(IllegalPollerCommand, match="start it instead"):
        next_status(PollerStatus.STOPPED, PollerCommand.RESUME)


def test_seek_back_and_forth(running: Stage) -> None:
    running.poller.seek(1)
    running.poller.step()
    running.poller.step()
    assert running.sink.applied_ids == [2, 3]
    running.writer.create_tables(4)
    running.poller.seek(6)
    running.poller.step()
    running.poller.step()
    assert running.sink.applied_ids == [7]
    assert [position for _, position in running.sink.resets] == [1, 6]
    for bad in (-1, 8):
        with pytest.raises(ValueError, match="the log ends at 7"):
            running.poller.seek(bad)
    assert running.poller.status is PollerStatus.ACTIVE


def test_seek_to_what_is_cleaned_away_heals_itself(running: Stage) -> None:
    running.writer.create_tables(4)
    running.writer.delete(1, 2, 3)
    running.poller.seek(1)
    outcomes = [running.poller.step().outcome for _ in range(3)]
    assert outcomes == [StepOutcome.RESYNCED, StepOutcome.RESYNCED, StepOutcome.CAUGHT_UP]
    assert running.poller.applied_position == 7


def test_last_of_two_commands_wins(running: Stage) -> None:
    running.poller.seek(1)
    running.poller.resync("changed my mind")
    running.poller.step()
    assert running.sink.resets == [("changed my mind", 3)]


def test_command_that_comes_while_everything_is_dropped(running: Stage) -> None:
    requested: list[int] = []

    def seek_once() -> None:
        if not requested:
            requested.append(1)
            running.poller.seek(1)

    running.poller.resync()
    running.log.before_fetch = seek_once
    assert running.poller.step().outcome is StepOutcome.RESYNCED
    assert running.poller.status is PollerStatus.NEEDS_RESYNC
    assert running.poller.step().outcome is StepOutcome.RESYNCED
    assert running.poller.status is PollerStatus.ACTIVE
    assert [position for _, position in running.sink.resets] == [3, 1]


@pytest.mark.parametrize("command", ["resync", "seek"])
def test_command_that_comes_during_a_step_is_not_left_to_the_next_poll(command: str, running: Stage) -> None:
    """A thread that steps at intervals is notified, and finds another step running: it must come back soon."""
    poller = running.new_poller(poll_interval_s=0)
    poller.start()
    poller.step()
    due: list[PollerStatus] = []
    found: list[StepResult] = []
    poller.on_resync_due = lambda: due.append(poller.status)

    def command_once() -> None:
        if not found:
            {"seek": lambda: poller.seek(1), "resync": poller.resync}[command]()
            found.append(poller.step())

    running.log.before_fetch = command_once
    assert poller.step().next_step_in_s < 1
    assert due == [PollerStatus.NEEDS_RESYNC]
    assert found[0].outcome is StepOutcome.BUSY and found[0].next_step_in_s < 1
    assert poller.step().outcome is StepOutcome.RESYNCED
    poller.step()
    assert math.isinf(poller.step().next_step_in_s) and due == [PollerStatus.NEEDS_RESYNC]
