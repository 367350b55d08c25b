"""Earlier versions of the server, from the history of this repository."""

from __future__ import annotations

import io
import subprocess
import tarfile
from pathlib import Path
from typing import IO, Any, ClassVar

import pytest

from tests.documentation.pages import ROOT
from tests.servers import ServerProcess

VERSIONS = {
    "2026-11-27": "3dc6395faf974edf46087893ba275610d796b2ca",
    "2026-11-30": "854aacda5b15575831e25904357d60f68d4cee19",
}
"""Commits by their days. Their formats on disk, and their messages to other servers, are those that are in use."""


def package_of(version: str, directory: Path) -> Path:
    """Writes the package of a version into `directory`. Skips the test in a clone without its history."""
    archive = subprocess.run(
        ["git", "-C", str(ROOT), "archive", VERSIONS[version], "hms_cache"], capture_output=True, check=False
    )
    if archive.returncode:
        pytest.skip(f"this clone has no history: {archive.stderr.decode()[:200]}")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(directory, filter="data")
    return directory


class EarlierServer(ServerProcess):
    """A server process of the version in `package`."""

    is_forked = False
    package: ClassVar[Path]

    def _launch(self, command: list[str], environment: dict[str, str], log: IO[str]) -> Any:
        return super()._launch(command, {**environment, "PYTHONPATH": str(self.package)}, log)


class EitherServer(EarlierServer):
    """Server processes of the two versions in turn."""

    launched: ClassVar[int] = 0

    def _launch(self, command: list[str], environment: dict[str, str], log: IO[str]) -> Any:
        EitherServer.launched += 1
        if EitherServer.launched % 2:
            return super()._launch(command, environment, log)
        return ServerProcess._launch(self, command, environment, log)
