"""Other releases of PySpark than the installed one, from PyPI, in the user's cache folder."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import pytest

from tests.downloads import FetchFailed, kept, run


@cache
def pyspark(version: str) -> Path:
    """Returns the folder with this release and its dependencies; downloads it at the first use."""

    def install(path: Path) -> None:
        run([sys.executable, "-m", "pip", "install", "-q", "--target", str(path), f"pyspark=={version}"])

    try:
        return kept(f"pyspark-{version}", install)
    except FetchFailed as error:
        pytest.skip(str(error))
