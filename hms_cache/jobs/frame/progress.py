"""Progress of a job on the terminal: its current step and the progress of Spark."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Progress:
    """Reports progress. This class does nothing; `terminal_progress` creates one that displays it."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        """The steps begun so far, the current one last."""

    @contextmanager
    def step(self, text: str) -> Iterator[None]:
        """Wraps a step of the job, described in a few words: ``Reading events``."""
        self.steps.append(text)
        self._begun()
        yield
        self._ended()

    def note(self, text: str) -> None:
        """Prints a line that remains, such as a count known before the end."""

    def _begun(self) -> None:
        """Called after a step has begun."""

    def _ended(self) -> None:
        """Called after a step has ended without an error."""


class TerminalProgress(Progress):
    """Shows the step with the number of finished Spark tasks, and the duration of each finished step.

    :param console: a ``rich.console.Console``, preferably on stderr.
    """

    def __init__(self, console: Any, tasks: Callable[[], tuple[int, int]]) -> None:
        """:param tasks: returns the numbers of finished and of all tasks of the running stages."""
        super().__init__()
        self._console = console
        self._tasks = tasks
        self._since_s = time.monotonic()

    def note(self, text: str) -> None:
        self._console.print(f"  {text}", highlight=False, markup=False)

    def _begun(self) -> None:
        self._since_s = time.monotonic()

    def _ended(self) -> None:
        duration_s = time.monotonic() - self._since_s
        self._console.print(f"{self.steps[-1]}  {duration_s:.1f} s", highlight=False, markup=False)

    def __rich__(self) -> Any:
        """The line that is redrawn several times a second."""
        from rich.text import Text

        if not self.steps:
            return Text("")
        done, total = self._tasks()
        tasks = f"  {done} of {total} tasks" if total else ""
        return Text(f"{self.steps[-1]} …{tasks}  {time.monotonic() - self._since_s:.0f} s")


@contextmanager
def terminal_progress(console: Any, spark: Any | None) -> Iterator[Progress]:
    """Shows progress on this console while the block runs.

    :param spark: None for a job without Spark.
    """
    from rich.live import Live

    progress = TerminalProgress(console, lambda: _running_tasks(spark) if spark is not None else (0, 0))
    with Live(progress, console=console, refresh_per_second=4, transient=True):
        yield progress


def _running_tasks(spark: Any) -> tuple[int, int]:
    """Numbers of finished and of all tasks in the running stages; zeros if Spark cannot be asked (Spark Connect)."""
    try:
        tracker = spark.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    except Exception:  # the display must not end the job: the session is stopping or remote
        return 0, 0
    running = [stage for stage in stages if stage is not None]
    return sum(stage.numCompletedTasks for stage in running), sum(stage.numTasks for stage in running)
