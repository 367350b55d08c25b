"""Decides which tests run in one process: those of a file, and all of the files that use Spark."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

SPARK = "tests with Spark"


@cache
def group_of(file: str, root: Path) -> str:
    """Returns the test's group. Each process has its own Spark, and starting it and loading its classes takes longer
    than most tests with it. A missing file is a group by itself."""
    path = root / file
    return SPARK if path.is_file() and "mark.spark" in path.read_text(encoding="utf-8") else file


class FilesScheduling(LoadFileScheduling):
    """As ``--dist loadfile``, but for Spark, and for tests that end their process.

    xdist runs such a test again in the next process, and often waits for ever for one that it has given nothing to do.
    """

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        super().__init__(config, log)
        self._root = config.rootpath

    def _split_scope(self, nodeid: str) -> str:
        return group_of(super()._split_scope(nodeid), self._root)

    def remove_node(self, node: WorkerController) -> str | None:
        """Returns the test that ended the process, if the process did not end by itself. Its remaining tests go to
        other processes."""
        pending = {
            scope: [test for test, is_done in tests.items() if not is_done]
            for scope, tests in self.assigned_work.pop(node).items()
        }
        ended = next((tests.pop(0) for tests in pending.values() if tests), None)
        self.workqueue.update({scope: dict.fromkeys(tests, False) for scope, tests in pending.items() if tests})
        for other in self.nodes:
            self._reschedule(other)
        return ended

    def _reschedule(self, node: WorkerController) -> None:
        """Gives processes more tests: a process begins a test when it knows the next one, and requests more after
        each."""
        if node not in self.registered_collections:
            return  # replacing another one; it gets its tests when it has collected them
        while not node.shutting_down and self._pending_of(self.assigned_work[node]) <= 2:
            super()._reschedule(node)
