"""Programs of Debian's unstable release, unpacked into the user's cache folder without being installed.

They bring newer database servers than the release that runs the tests, and MySQL, which no stable release has. Each
runs with the C library of its own release, so nothing of this machine is changed.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.downloads import FetchFailed, kept, run

_SOURCES = ("/etc/apt/sources.list", "/etc/apt/sources.list.d/*")
_ADDRESS = re.compile(r"^(?:URIs:|deb )[^\n]*?(\S+://\S+/debian)/?(?:\s|$)", re.MULTILINE)
_KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
_LOADER = "usr/lib64/ld-linux-x86-64.so.2"
_LIBRARIES = "usr/lib/x86_64-linux-gnu"


def unpacked(package: str) -> Path:
    """Returns the folder with the package and all that it depends on, as in a root folder.

    :raises FetchFailed: this is no Debian on amd64, or its registry cannot be reached.
    """
    return kept(f"debian-unstable/{package}", lambda folder: _fetch(package, folder))


def command(root: Path, program: str) -> list[str]:
    """The beginning of a command that runs a program of `unpacked`, with the libraries of its release."""
    return [str(root / _LOADER), "--library-path", str(root / _LIBRARIES), str(root / program)]


def _fetch(package: str, folder: Path) -> None:
    state = folder.with_name("apt")
    for part in ("lists/partial", "archives/partial"):
        (state / part).mkdir(parents=True)
    (state / "status").touch()
    (state / "sources.list").write_text(f"deb [signed-by={_KEYS}] {_registry()} sid main\n")
    options = {
        "Dir::Etc::sourcelist": state / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::State": state,
        "Dir::State::status": state / "status",
        "Dir::Cache": state,
        "APT::Sandbox::User": "root",
        "Debug::NoLocking": "1",
    }
    apt = ["apt-get", "-q", *(f"-o{name}={value}" for name, value in options.items())]
    run([*apt, "update"])
    run([*apt, "-y", "--no-install-recommends", "--download-only", "install", package])
    folder.mkdir()
    for archive in sorted((state / "archives").glob("*.deb")):
        run(["dpkg-deb", "--extract", str(archive), str(folder)])


def _registry() -> str:
    """The registry that this machine uses."""
    for pattern in _SOURCES:
        for file in sorted(Path("/").glob(pattern.removeprefix("/"))):
            if file.is_file() and (found := _ADDRESS.search(file.read_text(errors="replace"))) is not None:
                return found[1]
    raise FetchFailed("no registry of Debian is configured")
