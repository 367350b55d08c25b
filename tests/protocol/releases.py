"""Hive's own classes: jars from Maven Central, kept in the user's cache folder, and Java programs that use them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.downloads import FetchFailed, artifact, artifacts

JAVA_SOURCES = Path(__file__).parent / "java"

_COMMON = ("org.apache.thrift:libfb303:0.9.3", "org.slf4j:slf4j-api:1.7.30")
#: Release to the jars that hold its Thrift classes (the first one) and the Thrift runtime they were made for.
RELEASES = {
    "2.3.10": ("org.apache.hive:hive-metastore:2.3.10", "org.apache.thrift:libthrift:0.9.3"),
    "3.1.3": ("org.apache.hive:hive-standalone-metastore:3.1.3", "org.apache.thrift:libthrift:0.9.3"),
    "4.0.0": ("org.apache.hive:hive-standalone-metastore-common:4.0.0", "org.apache.thrift:libthrift:0.16.0"),
    "4.0.1": ("org.apache.hive:hive-standalone-metastore-common:4.0.1", "org.apache.thrift:libthrift:0.16.0"),
    "4.1.0": ("org.apache.hive:hive-standalone-metastore-common:4.1.0", "org.apache.thrift:libthrift:0.16.0"),
    "4.2.0": ("org.apache.hive:hive-standalone-metastore-common:4.2.0", "org.apache.thrift:libthrift:0.16.0"),
}
#: All of them; the quick tests examine the two that a site most likely has.
EACH_RELEASE = [
    release if release in ("3.1.3", "4.0.1") else pytest.param(release, marks=[pytest.mark.soak, pytest.mark.long])
    for release in RELEASES
]
#: Iceberg's runtime for the Spark of the tests.
ICEBERG_FOR_SPARK = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
#: Options for a Java that works for some seconds: to compile what it runs for good costs as much as all that it does.
BRIEF = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
#: The Java version that a release was compiled for, where it is not an old one.
_JAVA_NEEDED = {"4.2.0": 21}


@cache
def jar(coordinates: str) -> Path:
    """The jar of `group:name:version`, fetched at its first use."""
    try:
        return artifact(coordinates)
    except FetchFailed as error:
        pytest.skip(str(error))


def class_path(*coordinates: str) -> str:
    """The jars of each `group:name:version`, fetched together at the first use, as Java takes them."""
    try:
        return os.pathsep.join(map(str, artifacts(coordinates)))
    except FetchFailed as error:
        pytest.skip(str(error))


def _version_of(java: Path) -> int:
    told = subprocess.run([str(java), "-version"], capture_output=True, text=True, timeout=60).stderr
    found = re.search(r'version "(?:1\.)?(\d+)', told)
    return int(found.group(1)) if found else 0


@cache
def java_program(minimum: int = 17) -> str:
    """A Java of at least this version that can run source files."""
    candidates = [Path(home) / "bin" / "java" for home in [os.environ.get("JAVA_HOME")] if home]
    candidates += [Path(found) for found in [shutil.which("java")] if found]
    candidates += sorted(Path("/usr/lib/jvm").glob("*/bin/java"))
    for candidate in candidates:
        if candidate.exists() and _version_of(candidate) >= minimum:
            return str(candidate)
    pytest.skip(f"needs Java {minimum} or later")


def run_java(source: str, release: str, *arguments: str, stdin: str = "") -> str:
    """The output of the Java program `source` with the classes of a Hive release."""
    jars = class_path(*RELEASES[release], *_COMMON)
    command = [java_program(_JAVA_NEEDED.get(release, 17)), *BRIEF, "-cp", jars]
    done = subprocess.run(
        [*command, str(JAVA_SOURCES / source), *(arguments or (jars.partition(os.pathsep)[0],))],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
