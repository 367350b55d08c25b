"""Two real metastores, one of them with planted differences, compared by the shadow."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from hms_cache.app.service import Service
from hms_cache.app.shadow.comparing import Rules
from hms_cache.app.shadow.metastore import Endpoint
from hms_cache.app.shadow.recording import BadRecording, Recorder, recorded_reads
from hms_cache.app.shadow.running import walk
from hms_cache.authentication.servers import Address
from hms_cache.cli.main import commands
from hms_cache.client import MetastoreClient
from hms_cache.config import load
from hms_cache.wire import METHODS
from tests.app.shadow.catalogs import PARTITIONS, fill
from tests.servers import MAX_WAIT_S


@dataclass(frozen=True)
class Pair:
    """Two metastores with a catalog each."""

    primary: str
    other: str


def running_service(directory: Path, stack: ExitStack) -> str:
    """A metastore with a catalog of its own. The pair has one warehouse, so that locations are equal."""
    service = Service(
        load(
            command_line={
                "server.port": 0,
                "admin.enabled": False,
                "catalog.statistics_autogather": False,
                "database.url": f"sqlite:///{directory / 'hms.db'}",
                "warehouse.directory": str(directory.parent / "warehouse"),
                "warehouse.allowed_locations": str(directory.parent),
            },
            environment={},
        )
    )
    uri = service.start()
    stack.callback(service.stop)
    return uri


@pytest.fixture(scope="module")
def alike(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Two with equal contents. Do not change them."""
    with ExitStack() as stack:
        yield two_filled(tmp_path_factory.mktemp("alike"), stack)


@pytest.fixture(scope="module")
def unlike(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Two; the second has a changed partition and lacks a table."""
    with ExitStack() as stack:
        pair = two_filled(tmp_path_factory.mktemp("unlike"), stack)
        with MetastoreClient(pair.other) as client:
            partition = client.call("get_partition", "shop", "orders", ["d3"])
            partition.parameters["n"] = "2"
            client.call("alter_partition", "shop", "orders", partition)
            client.call("drop_table", "shop", "stock", False)
        yield pair


def two_filled(directory: Path, stack: ExitStack) -> Pair:
    uris = []
    for name in ("primary", "other"):
        (directory / name).mkdir()
        uris.append(running_service(directory / name, stack))
        with MetastoreClient(uris[-1]) as client:
            fill(client, (directory / "files").as_uri())
    return Pair(*uris)


def shadow(*arguments: str) -> tuple[int, dict[str, Any]]:
    """Exit status and report of a run that ends by itself."""
    result = CliRunner().invoke(commands, ["shadow", *arguments, "--json"])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, json.loads(result.stdout)


def listening(pair: Pair, *arguments: str) -> tuple[subprocess.Popen[str], str]:
    """A shadow that serves clients, and its address."""
    command = [sys.executable, "-c", "from hms_cache.cli.main import main; main()", "shadow", "--json"]
    command += ["--server", pair.primary, "--listen", "127.0.0.1:0", *arguments]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HMS_CACHE")}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    return process, process.stderr.readline().removeprefix("listening ").strip()


def finished(process: subprocess.Popen[str]) -> tuple[int, dict[str, Any]]:
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=MAX_WAIT_S)
    assert "Traceback" not in errors, errors
    return process.returncode, json.loads(output)


def test_a_walk_over_equal_catalogs_finds_nothing(alike: Pair) -> None:
    status, report = shadow("--server", alike.primary, "--against", alike.other, "--walk")
    assert (status, report["differences"]) == (0, [])
    assert report["totals"]["equal"] == sum(report["totals"].values())
    assert report["methods"]["get_partitions_by_names"]["equal"] == 2
    assert report["methods"]["get_partitions_statistics_req"]["equal"] == 2


def test_a_walk_finds_what_is_planted_and_nothing_else(unlike: Pair) -> None:
    status, report = shadow("--server", unlike.primary, "--against", unlike.other, "--walk")
    assert status == 1
    orders = [call for call in report["differences"] if "orders" in call["arguments"]]
    assert [call["method"] for call in orders] == ["get_partitions_by_names"]
    assert {"path": '[["d3"]].parameters.n', "primary": "1", "other": "2"} in orders[0]["differences"]
    assert all(endpoint["path"].startswith('[["d3"]].parameters.') for endpoint in orders[0]["differences"])
    stock = {call["method"]: call["differences"][0]["other"] for call in report["differences"] if call not in orders}
    assert stock["get_all_tables"] == "absent"
    assert stock["get_table_req"].startswith("NoSuchObjectException")


def test_a_walk_can_be_narrowed(unlike: Pair) -> None:
    _, report = shadow("--server", unlike.primary, "--against", unlike.other, "--walk", "--table", "shop.none")
    assert "get_table_req" not in report["methods"]


def test_a_metastore_that_is_away_is_told(alike: Pair) -> None:
    report = walk(Endpoint(Address.parse(alike.primary)), Endpoint(Address("127.0.0.1", 1)), Rules())
    assert not report.is_clean
    assert report.total("unanswered") > 0
    assert any("127.0.0.1:1" in note for note in report.as_json()["notes"])


def test_clients_get_the_primary_and_differences_are_reported(unlike: Pair, tmp_path: Path) -> None:
    recording = tmp_path / "reads.jsonl"
    process, uri = listening(unlike, "--against", unlike.other, "--record", str(recording))
    with MetastoreClient(uri) as client:
        assert client.call("get_all_tables", "shop") == ["orders", "stock"]
        assert client.call("get_partition", "shop", "orders", ["d3"]).parameters["n"] == "1"
        assert len(client.call("get_partitions", "shop", "orders", -1)) == PARTITIONS
        assert client.call("get_partition", "shop", "orders", ["d0"]).values == ["d0"]
    status, report = finished(process)
    assert status == 1
    assert {call["method"] for call in report["differences"]} == {"get_all_tables", "get_partition", "get_partitions"}
    assert report["methods"]["get_partition"] == {
        "equal": 1,
        "different": 1,
        "transient": 0,
        "unanswered": 0,
        "dropped": 0,
    }

    status, again = shadow("--server", unlike.primary, "--against", unlike.other, "--replay", str(recording))
    assert status == 1
    assert again["methods"] == report["methods"]
    assert sorted(map(str, again["differences"])) == sorted(map(str, report["differences"]))


def test_writes_reach_the_primary_alone(alike: Pair, tmp_path: Path) -> None:
    """A recording needs no second metastore."""
    recording = tmp_path / "reads.jsonl"
    process, uri = listening(alike, "--record", str(recording))
    with MetastoreClient(uri) as client:
        function = client.call("get_function", "shop", "twice")
        function.functionName = "thrice"
        client.call("create_function", function)
    with MetastoreClient(alike.primary) as client:
        client.call("drop_function", "shop", "thrice")
    status, report = finished(process)
    assert (status, report["methods"]) == (0, {})
    assert [read.method for read in recorded_reads(recording)] == ["get_function"]
    with MetastoreClient(alike.other) as client:
        assert client.call("get_functions", "shop", "*") == ["twice"]


def test_clients_are_served_although_the_recording_cannot_be_written(alike: Pair) -> None:
    """The disk is full."""
    process, uri = listening(alike, "--record", "/dev/full")
    with MetastoreClient(uri) as client:
        for _ in range(3):
            assert client.call("get_all_tables", "shop") == ["orders", "stock"]
    status, report = finished(process)
    assert status == 0
    assert report["notes"] == {"the recording is not complete: No space left on device": 1}


def test_the_table_for_people_names_the_place(unlike: Pair) -> None:
    result = CliRunner().invoke(
        commands,
        ["shadow", "--server", unlike.primary, "--against", unlike.other, "--walk", "--table", "*.orders"],
        env={"COLUMNS": "150"},
    )
    assert result.exit_code == 1
    assert '[["d3"]].parameters.n: 1 | 2' in result.stdout
    assert "get_partitions_by_names" in result.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("--walk",),
        ("--walk", "--against", "thrift://a:1", "--record", "x"),
        ("--table", "a.b", "--against", "thrift://a:1"),
        (),
    ],
)
def test_options_that_do_not_go_together_are_refused(arguments: tuple[str, ...]) -> None:
    assert CliRunner().invoke(commands, ["shadow", *arguments]).exit_code == 2


def test_a_recording_is_its_owners_alone(tmp_path: Path) -> None:
    """Requests contain what clients store in the catalog, including passwords of their tables."""
    before = os.umask(0o022)
    try:
        with Recorder(tmp_path / "reads") as recorder:
            recorder.write("get_all_functions", METHODS["get_all_functions"].args_class())
    finally:
        os.umask(before)
    assert (tmp_path / "reads").stat().st_mode & 0o777 == 0o600


def test_a_damaged_recording_names_its_line(tmp_path: Path) -> None:
    (tmp_path / "reads").write_text('{"method": "get_all_databases", "arguments": "AA=="}\n{"method": "none"}\n')
    with pytest.raises(BadRecording, match=":2: "):
        list(recorded_reads(tmp_path / "reads"))
