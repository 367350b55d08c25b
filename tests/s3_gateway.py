"""S3 over a file system as a separate program: the Versity gateway, whose keys are files in directories."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests import downloads
from tests.programs import listening
from tests.s3_objects import Buckets

_PROGRAM, _VERSION = "github.com/versity/versitygw/cmd/versitygw", "v1.8.0"


def find() -> Path:
    """Returns the program; Go builds it at the first use, in three minutes on two cores. Raises
    `downloads.FetchFailed`."""
    return downloads.go_program(_PROGRAM, _VERSION)


@contextmanager
def gateway(program: Path, directory: Path) -> Iterator[Buckets]:
    """Yields a server that is ready; stops it at the end. Its buckets are the directories in `directory`/buckets."""
    buckets = directory / "buckets"
    buckets.mkdir()

    def command(port: int) -> list[str]:
        return [str(program), "--quiet", "--keep-alive", "--port", f"127.0.0.1:{port}", "posix", str(buckets)]

    access = {"ROOT_ACCESS_KEY_ID": "any", "ROOT_SECRET_ACCESS_KEY": "any"}
    with listening(command, directory / "gateway.log", **access) as port:
        yield Buckets(port)
