"""Trino's server from Maven Central, in the user's cache folder, with the plugins that the tests use."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from tests.downloads import FetchFailed, unpacked

VERSION = "476"
JAVA_NEEDED = 24
PLUGINS = ("hive", "iceberg", "delta-lake", "hudi")


class TrinoMissing(Exception):
    """Trino cannot be obtained here; the message says why."""


def java() -> Path:
    """Returns a Java that can run this Trino: from ``TRINO_JAVA_HOME`` or below ``/usr/lib/jvm``. Raises
    `TrinoMissing`."""
    named = os.environ.get("TRINO_JAVA_HOME")
    homes = [Path(named)] if named else sorted(Path("/usr/lib/jvm").glob("*"))
    for home in homes:
        program = home / "bin" / "java"
        if program.exists() and version_of(program) >= JAVA_NEEDED:
            return program
    raise TrinoMissing(f"Trino {VERSION} needs Java {JAVA_NEEDED} or later in /usr/lib/jvm or in $TRINO_JAVA_HOME")


def fetch() -> Path:
    """Returns the unpacked server; downloads it at the first use. Raises `TrinoMissing` if Maven cannot."""
    # Its folder names them: with other plugins, it is unpacked again.
    home = f"trino-{VERSION}-{'-'.join(PLUGINS)}/trino-server-{VERSION}"
    try:
        return unpacked(f"io.trino:trino-server:{VERSION}:tar.gz", home, _is_needed)
    except FetchFailed as error:
        raise TrinoMissing(str(error)) from error


def _is_needed(name: str) -> bool:
    _, _, path = name.partition("/")
    return path.startswith(("lib/", *(f"plugin/{plugin}/" for plugin in PLUGINS)))


def version_of(program: Path) -> int:
    """The main version of a Java; 0 if it does not tell."""
    told = subprocess.run([str(program), "-version"], capture_output=True, text=True, timeout=60, check=False).stderr
    found = re.search(r'version "(?:1\.)?(\d+)', told)
    return int(found.group(1)) if found else 0
