"""Test classes of other projects (JUnit 5, from Maven Central), downloaded and run with JUnit's console launcher."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

CLASS_TIMEOUT_S = 600


@dataclass(frozen=True)
class Outcome:
    """The tests of one class by name; a test with arguments has one name for each of them. `unfit` are those that the
    class itself skips (an assumption is not met); `output` is what JUnit printed."""

    passed: frozenset[str]
    failed: frozenset[str]
    unfit: frozenset[str]
    output: str


def project(dependencies: Sequence[str]) -> str:
    """A Maven project with these dependencies; see `dependency`."""
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>tests</groupId>'
        f"<artifactId>tests</artifactId><version>1</version><dependencies>{''.join(dependencies)}</dependencies></project>"
    )


def dependency(artifact: str, more: str = "", without: Sequence[str] = ()) -> str:
    """Returns the dependency `group:name:version` without the dependencies of these groups."""
    group, name, version = artifact.split(":")
    exclusions = "".join(
        f"<exclusion><groupId>{group}</groupId><artifactId>*</artifactId></exclusion>" for group in without
    )
    return (
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>"
        f"{more}{f'<exclusions>{exclusions}</exclusions>' if exclusions else ''}</dependency>"
    )


def run_class(
    name: str,
    directory: Path,
    class_path: str,
    properties: Mapping[str, str],
    options: Sequence[str] = (),
    *,
    java: str = "java",
) -> Outcome:
    """Runs one class in this directory. Raises AssertionError if JUnit did not finish, or found no tests."""
    return run_classes([name], directory, class_path, properties, options, java=java)[name]


def run_classes(
    names: Sequence[str],
    directory: Path,
    class_path: str,
    properties: Mapping[str, str],
    options: Sequence[str] = (),
    *,
    java: str = "java",
    timeout_s: float = CLASS_TIMEOUT_S,
) -> dict[str, Outcome]:
    """Runs classes in one JVM, one after the other; each result contains all that JUnit printed. `timeout_s` is for
    one of them. Raises like `run_class`."""
    reports = directory / f"reports-{names[0].rpartition('.')[2]}"
    finished = subprocess.run(
        [
            java,
            *options,
            *[f"-D{key}={value}" for key, value in properties.items()],
            "-cp",
            class_path,
            "org.junit.platform.console.ConsoleLauncher",
            "execute",
            "--disable-banner",
            "--disable-ansi-colors",
            "--details=summary",
            f"--reports-dir={reports}",
            *[f"--select-class={name}" for name in names],
        ],
        capture_output=True,
        text=True,
        timeout=timeout_s * len(names),
        cwd=directory,
    )
    output = finished.stdout + finished.stderr
    report = reports / "TEST-junit-jupiter.xml"
    assert report.exists(), output[-4000:]
    cases = list(ElementTree.parse(report).iter("testcase"))
    outcomes = {name: _outcome([case for case in cases if case.attrib["classname"] == name], output) for name in names}
    # What fails before or after all tests of a class is no test case.
    assert finished.returncode == 0 or any(outcome.failed for outcome in outcomes.values()), output[:4000]
    return outcomes


def _outcome(reported: Sequence[ElementTree.Element], output: str) -> Outcome:
    cases = {case.attrib["name"]: case for case in reported}
    failed = {test for test, case in cases.items() if case.find("failure") is not None}
    failed |= {test for test, case in cases.items() if case.find("error") is not None}
    unfit = {test for test, case in cases.items() if case.find("skipped") is not None}
    assert cases, output[-4000:]
    return Outcome(frozenset(cases) - failed - unfit, frozenset(failed), frozenset(unfit), output)
