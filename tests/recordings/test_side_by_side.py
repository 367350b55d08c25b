"""Calls of real clients, sent to Hive 4.0.1 and to ours on equal databases: the same answers, and the same rows."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.conftest import ServerLookup
from tests.differential.metastores import own_database
from tests.recordings.compare import side_by_side
from tests.recordings.metastores import hives_metastore, our_metastore
from tests.recordings.recording import DIRECTORY, read_recording

CLIENTS = sorted(path.stem for path in DIRECTORY.glob("*.xz"))


@pytest.mark.soak
@pytest.mark.long
@pytest.mark.java
@pytest.mark.mariadb
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("client", CLIENTS)
def test_answers_and_rows_are_the_same(
    client: str, database_servers: ServerLookup, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    databases = database_servers("mariadb")
    with ExitStack() as stack:
        java = stack.enter_context(hives_metastore(databases, tmp_path / "java"))
        ours = stack.enter_context(our_metastore(own_database(databases, stack)))
        report = side_by_side(read_recording(DIRECTORY / f"{client}.xz"), java, ours)
    with capsys.disabled():
        print(
            f"\n{client}: {report.calls} calls of {len(report.methods)} methods, rows compared {report.looks_at_rows}"
        )
        for reason, count in report.reasons.items():
            print(f"  {count} x {reason}")
    assert report.looks_at_rows > 2
    assert not report.differences, str(report)
