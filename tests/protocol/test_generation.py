"""The committed code is equal to the generator's output for the IDL."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

GENERATOR = Path(__file__).parents[2] / "tools" / "generate_thrift.py"


def test_the_generated_code_is_current() -> None:
    if shutil.which("thrift") is None:
        pytest.skip("needs the Thrift compiler")
    done = subprocess.run([sys.executable, str(GENERATOR), "--check"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
