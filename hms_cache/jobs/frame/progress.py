"""Progress of a job on the terminal: its step, and what Spark does for it now."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Progress:
    """Tells what a job does. This one is silent; `terminal_progress` makes one that shows."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        """Steps begun so far, the running one last."""

    @contextmanager
    def step(self, text: str) -> Iterator[None]:
        """A part of the job, in a few words: ``Reading events``."""
        self.steps.append(text)
        self._begun()
        yield
        self._ended()

    def note(self, text: str) -> None:
        """A line that stays, such as a count that is known before the end."""

    def _begun(self) -> None:
        """A step began."""

    def _ended(self) -> None:
        """The step ended, without an error."""


class TerminalProgress(Progress):
    """Shows the step with the tasks that Spark has finished, and each step's time once it is done.

    :param console: a ``rich.console.Console``, best on stderr.
    """

    def __init__(self, console: Any, tasks: Callable[[], tuple[int, int]]) -> None:
        """``tasks`` tells how many tasks of the running stages are done, and how many there are."""
        super().__init__()
        self._console = console
        self._tasks = tasks
        self._since_s = time.monotonic()

    def note(self, text: str) -> None:
        self._console.print(f"  {text}", highlight=False, markup=False)

    def _begun(self) -> None:
        self._since_s = time.monotonic()

    def _ended(self) -> None:
        took_s = time.monotonic() - self._since_s
        self._console.print(f"{self.steps[-1]}  {took_s:.1f} s", highlight=False, markup=False)

    def __rich__(self) -> Any:
        """The line that is drawn anew several times a second."""
        from rich.text import Text

        if not self.steps:
            return Text("")
        done, total = self._tasks()
        tasks = f"  {done} of {total} tasks" if total else ""
        return Text(f"{self.steps[-1]} …{tasks}  {time.monotonic() - self._since_s:.0f} s")


@contextmanager
def terminal_progress(console: Any, spark: Any | None) -> Iterator[Progress]:
    """Progress on this console while the block runs; `spark`: None for a job without it."""
    from rich.live import Live

    progress = TerminalProgress(console, lambda: _running_tasks(spark) if spark is not None else (0, 0))
    with Live(progress, console=console, refresh_per_second=4, transient=True):
        yield progress


def _running_tasks(spark: Any) -> tuple[int, int]:
    """Tasks done and tasks in all, of the stages that run now; none where Spark cannot be asked (Spark Connect)."""
    try:
        tracker = spark.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    except Exception:  # the display must not end the job: the session is stopping, or is a remote one
        return 0, 0
    running = [stage for stage in stages if stage is not None]
    return sum(stage.numCompletedTasks for stage in running), sum(stage.numTasks for stage in running)
