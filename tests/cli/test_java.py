"""Which Java the demo uses, and the launcher for a runtime that lacks a module."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hms_cache.cli.demo import java
from hms_cache.errors import StartupError


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def java_of_version(home: Path, version: str) -> Path:
    program(home / "bin" / "java", f"echo 'openjdk version \"{version}\" 2026-01-01' >&2")
    return home


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine without a Java of its own, and without the packaged one."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setattr(java.shutil, "which", lambda _name: None)  # type: ignore[attr-defined]
    monkeypatch.setattr(java, "_packaged_java", lambda: None)
    return monkeypatch


def test_without_any_java_the_error_says_what_to_install(tmp_path: Path, no_java: pytest.MonkeyPatch) -> None:
    with pytest.raises(StartupError) as caught:
        java.java_home(tmp_path)
    assert "17 or 21" in caught.value.problem
    assert "apt-get install" in caught.value.remedy


def test_java_home_is_taken_when_spark_can_run_on_it(tmp_path: Path, no_java: pytest.MonkeyPatch) -> None:
    no_java.setenv("JAVA_HOME", str(java_of_version(tmp_path / "jdk", "17.0.15")))
    assert java.java_home(tmp_path) == tmp_path / "jdk"


def test_a_java_that_is_too_old_is_passed_over(tmp_path: Path, no_java: pytest.MonkeyPatch) -> None:
    no_java.setenv("JAVA_HOME", str(java_of_version(tmp_path / "old", "1.8.0_402")))
    with pytest.raises(StartupError, match="old"):
        java.java_home(tmp_path)
    good = java_of_version(tmp_path / "good", "21.0.8") / "bin" / "java"
    no_java.setattr(java.shutil, "which", lambda _name: str(good))  # type: ignore[attr-defined]
    assert java.java_home(tmp_path) == tmp_path / "good"


def test_the_launcher_leaves_out_the_missing_module_and_nothing_else(
    tmp_path: Path, no_java: pytest.MonkeyPatch
) -> None:
    real = program(tmp_path / "runtime" / "bin" / "java", 'for a in "$@"; do printf \'%s\\n\' "$a"; done')
    no_java.setattr(java, "_packaged_java", lambda: real)
    home = java.java_home(tmp_path / "scratch")
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-Dx=a b", "--add-modules=java.sql", "", "*"]
    told = subprocess.run([home / "bin" / "java", *arguments], capture_output=True, text=True, check=True, timeout=60)
    assert told.stdout.split("\n") == ["-Xmx1g", "-Dx=a b", "--add-modules=java.sql", "", "*", ""]
