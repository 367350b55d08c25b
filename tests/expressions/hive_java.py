"""Runs our Java programs with the jars of a Hive from Maven: its class path, its Kryo, its own answers.

`python -m tests.expressions.hive_java` prints the contents of `hms_cache/expressions/kryo_classes.tsv`.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

HIVE_VERSIONS = ("4.0.1", "3.1.3", "2.3.10")
SOURCES = Path(__file__).parent / "java"
# Kryo accesses these; JDKs after 8 forbid this by default.
_OPENED = (
    "java.base/java.io",
    "java.base/java.lang",
    "java.base/java.math",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.security",
    "java.base/java.text",
    "java.base/java.time",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/java.util.concurrent.atomic",
    "java.base/java.util.regex",
    "java.base/sun.util.calendar",
    "java.sql/java.sql",
)
_TIMEOUT_S = 280


def missing_tools() -> list[str]:
    return [tool for tool in ("mvn", "javac", "java") if shutil.which(tool) is None]


def _build_directory() -> Path:
    return Path(os.environ.get("HMS_CACHE_JAVA_BUILD", Path(tempfile.gettempdir()) / "hms-cache-java"))


@functools.lru_cache(maxsize=len(HIVE_VERSIONS))
def class_path(version: str) -> str:
    """The compiled programs and every jar they need, fetched into Maven's own repository."""
    directory = _build_directory() / f"expressions-{version}"
    directory.mkdir(parents=True, exist_ok=True)
    listed = directory / "class-path"
    command = ["mvn", "-q", "-B", "-f", str(SOURCES / "pom.xml"), f"-Dhive.version={version}"]
    subprocess.run(
        [*command, "dependency:build-classpath", f"-Dmdep.outputFile={listed}"],
        check=True,
        timeout=_TIMEOUT_S,
        stdout=subprocess.DEVNULL,
    )
    jars = listed.read_text().strip()
    sources = [str(path) for path in sorted(SOURCES.glob("*.java"))]
    compile_command = ["javac", "-nowarn", "-cp", jars, "-d", str(directory / "classes"), *sources]
    subprocess.run(compile_command, check=True, timeout=_TIMEOUT_S, stderr=subprocess.DEVNULL)
    return os.pathsep.join([str(directory / "classes"), jars])


def run(version: str, program: str, arguments: Sequence[str], time_zone: str = "UTC") -> list[str]:
    """The lines a program prints."""
    opened = [part for name in _OPENED for part in ("--add-opens", f"{name}=ALL-UNNAMED")]
    command = ["java", *opened, f"-Duser.timezone={time_zone}", "-Dfile.encoding=UTF-8", "-cp", class_path(version)]
    finished = subprocess.run(
        [*command, program, *arguments], check=True, timeout=_TIMEOUT_S, capture_output=True, encoding="utf-8"
    )
    return finished.stdout.splitlines()


def classes_of(version: str) -> list[str]:
    """How this Hive's Kryo writes its classes, one a line."""
    jars = class_path(version).split(os.pathsep)
    return run(version, "KryoClasses", [next(jar for jar in jars if Path(jar).name.startswith("hive-exec"))])


def merged_classes() -> list[str]:
    """The classes of all versions, each line preceded by the versions to which it applies."""
    versions: dict[str, list[str]] = {}
    for version in HIVE_VERSIONS:
        for line in classes_of(version):
            versions.setdefault(line, []).append(version.partition(".")[0])
    return sorted(
        (",".join(some) + "\t" + line for line, some in versions.items()), key=lambda line: line.split("\t")[1:]
    )


if __name__ == "__main__":
    sys.stdout.write("\n".join(merged_classes()) + "\n")
