"""The pages in a real browser (Chromium, headless): they show their contents, and everything in them loads.

With ``HMS_CACHE_PICTURES=docs/images``, the pictures for the documents are taken along the way.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hmsclient.genthrift.hive_metastore import ttypes

from hms_cache.admin.pages.routes import PAGES
from tests.admin.running import TOKEN, Running
from tests.admin.test_commands import new_table

pytestmark = [pytest.mark.soak, pytest.mark.long]  # the browser is a large package, and slow to start

SIZE = (1100, 800)
PICTURES = {"overview", "events", "cache", "table"}
SEEN = {
    "overview": ("answered from memory", "get_table", "<polyline"),
    "events": ("ACTIVE", "fetch a batch", "every event was understood"),
    "cache": ("Largest tables", "shop.sales", "partitions"),
    "table": ("our own bytes", "by Impala", "Compare now"),
    "operations": ("create_table", "refresh", "shop.sales"),
    "configuration": ("cache.max_staleness_ms", "command line"),
    "blind_spots": ("Manual SQL", "materialized views"),
}


@pytest.fixture(scope="module")
def chromium() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        if os.environ.get("HMS_CACHE_REQUIRE_DATABASES") == "1":
            pytest.fail("no chromium: tools/install_packages.sh browser installs it")
        pytest.skip("no chromium")
    return found


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    server = Running(
        tmp_path_factory.mktemp("browser"),
        cache__warm="off",
        warehouse__directory="s3a://lake/warehouse",
        warehouse__files="leave",
    )
    client = server.client
    client.create_database(ttypes.Database(name="shop"))
    for name, keys in (("sales", ("ds", "region")), ("customers", ()), ("returns", ("ds",)), ("items", ())):
        client.create_table(new_table(name, keys))
    descriptor = new_table("sales").sd
    for table, values in (("sales", lambda day: [f"2026-01-{day:02d}", "north"]), ("returns", lambda day: [f"{day}"])):
        client.add_partitions(
            [
                ttypes.Partition(
                    values=values(day),
                    dbName="shop",
                    tableName=table,
                    sd=descriptor,
                    parameters={"numFiles": "4", "totalSize": "734003200"},
                )
                for day in range(1, 29)
            ]
        )
    for part in range(1, 25):
        for _ in range(part * 3 % 40):
            client.get_table("shop", "sales")
            client.get_partitions("shop", "returns", -1)
        client.get_all_tables("shop")
        client.get_table("shop", ("customers", "items")[part % 2])
        client.get_partitions("shop", "sales", -1)
        if part % 9 == 0:
            client.add_partitions([_partition("returns", f"late{part}")])
        server.history.sample()
    server.command("refresh", "database=shop&table=sales")
    server.command("verify", "")
    yield server
    server.close()


def _partition(table: str, value: str) -> ttypes.Partition:
    return ttypes.Partition(values=[value], dbName="shop", tableName=table, sd=new_table(table).sd, parameters={})


def browse(chromium: str, directory: Path, url: str, *what: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            chromium,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--enable-logging=stderr",
            f"--user-data-dir={directory / 'profile'}",
            f"--window-size={SIZE[0]},{SIZE[1]}",
            *what,
            url,
        ],
        capture_output=True,
        text=True,
        timeout=180,
        check=True,
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.template)
def test_a_browser_shows_the_page(chromium: str, running: Running, tmp_path: Path, page: object) -> None:
    template = page.template  # type: ignore[attr-defined]
    path = page.path.replace("{name}", "shop.sales")  # type: ignore[attr-defined]
    shown = browse(chromium, tmp_path, f"{running.management}{path}", "--dump-dom")
    for text in SEEN[template]:
        assert text in shown.stdout, f"{text} is not on {path}"
    complaints = [line for line in shown.stderr.splitlines() if "CONSOLE" in line and "favicon" not in line]
    assert complaints == [], "the browser complains of nothing (content policy, scripts, what did not load)"
    picture = tmp_path / f"{template}.png"
    browse(chromium, tmp_path, f"{running.management}{path}", f"--screenshot={picture}")
    data = picture.read_bytes()
    assert data.startswith(b"\x89PNG") and struct.unpack(">II", data[16:24]) == SIZE
    assert len(data) > 10_000, "it is not blank"
    target = os.environ.get("HMS_CACHE_PICTURES")
    if target and template in PICTURES:
        shutil.copy(picture, Path(target) / f"{template}.png")


def test_what_is_wrong_is_seen(chromium: str, running: Running, tmp_path: Path) -> None:
    running.ask("/events/pause", TOKEN, post=True)
    running.client.create_table(new_table("unseen"))
    running.probe.forget()
    running.json("/events")
    shown = browse(chromium, tmp_path, f"{running.management}/events", "--dump-dom").stdout
    assert 'class="bad">PAUSED' in shown and "paused by an operator" in shown
    running.ask("/events/resume", TOKEN, post=True)
