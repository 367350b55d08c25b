"""HAProxy, a real proxy."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.programs import listening


@contextmanager
def haproxy(directory: Path, configuration: str) -> Iterator[int]:
    """HAProxy with a configuration, on the port that `PORT` in it stands for."""
    program = shutil.which("haproxy", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
    if program is None:
        pytest.skip("install haproxy")
    file = directory / "haproxy.cfg"

    def command(port: int) -> list[str]:
        file.write_text(configuration.replace("PORT", str(port)))
        subprocess.run([program, "-c", "-f", str(file)], check=True, capture_output=True)
        return [program, "-db", "-f", str(file)]

    with listening(command, directory / "haproxy.log") as port:
        yield port
