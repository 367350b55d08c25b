"""Hive's own `HyperLogLog`, from Maven Central."""

from __future__ import annotations

import base64
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.protocol.releases import BRIEF, class_path, java_program

_JARS = (
    "org.apache.hive:hive-standalone-metastore-server:4.0.1",
    "org.apache.hive:hive-storage-api:4.0.1",
    "org.apache.hadoop:hadoop-client-api:3.3.6",
    "com.google.guava:guava:22.0",
    "org.slf4j:slf4j-api:1.7.30",
)
_SOURCE = Path(__file__).parent / "java" / "HiveSketches.java"


def hive_sketches(requests: Sequence[tuple[str, Sequence[object]]]) -> list[tuple[int, bytes]]:
    """The estimate and the serialized sketch of each request: the kind of its values, and the values.

    Kinds: `long`, `double`, `decimal`, `text` (values are bytes), `merge` (values are serialized sketches).
    """
    lines = []
    for kind, values in requests:
        texts = [base64.b64encode(value).decode() if isinstance(value, bytes) else str(value) for value in values]
        lines.append(" ".join([kind, *texts]))
    done = subprocess.run(
        [java_program(17), *BRIEF, "-cp", class_path(*_JARS), str(_SOURCE)],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    answers = [line.split(" ") for line in done.stdout.splitlines()]
    return [(int(estimate), base64.b64decode(data)) for estimate, data in answers]
