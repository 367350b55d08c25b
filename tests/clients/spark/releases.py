"""Other releases of PySpark than the installed one, from PyPI, kept in the user's cache folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest


@cache
def pyspark(version: str) -> Path:
    """The folder with this release and what it needs, fetched at the first use."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hms-cache"
    folder = base / f"pyspark-{version}"
    if not folder.exists():
        base.mkdir(parents=True, exist_ok=True)
        new = base / f"pyspark-{version}.new-{os.getpid()}"
        command = [sys.executable, "-m", "pip", "install", "-q", "--target", str(new), f"pyspark=={version}"]
        fetched = subprocess.run(command, capture_output=True, text=True, timeout=900)
        if fetched.returncode:
            shutil.rmtree(new, ignore_errors=True)
            pytest.skip(f"pip cannot fetch PySpark {version}: {fetched.stderr[-300:]}")
        new.rename(folder)
    return folder
