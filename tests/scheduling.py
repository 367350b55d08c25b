"""Which tests run in one process: those of a file, and all of the files that use Spark."""

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
    """Each process has a Spark of its own: to start one, and to have it load its classes, takes longer than most tests
    with it. A file that is not there is a group by itself."""
    path = root / file
    return SPARK if path.is_file() and "mark.spark" in path.read_text(encoding="utf-8") else file


class FilesScheduling(LoadFileScheduling):
    """As ``--dist loadfile``, but for Spark, and a test that ends its process is not run again by the next one."""

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        super().__init__(config, log)
        self._root = config.rootpath

    def _split_scope(self, nodeid: str) -> str:
        return group_of(super()._split_scope(nodeid), self._root)

    def remove_node(self, node: WorkerController) -> str | None:
        pending = (
            (unit, test) for unit in self.assigned_work[node].values() for test, is_done in unit.items() if not is_done
        )
        unit, ended = next(pending, ({}, None))
        if ended is not None:
            unit[ended] = True
        super().remove_node(node)
        return ended
