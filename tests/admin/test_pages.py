"""Each page in both forms: the JSON is its dataclass, the HTML is well-formed and shows its contents."""

from __future__ import annotations

import itertools
import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, closing
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hmsclient.genthrift.hive_metastore import ttypes
from pydantic import TypeAdapter

from hms_cache.admin.pages.overview import MEANINGS
from hms_cache.admin.pages.routes import PAGES, Page
from hms_cache.admin.siblings import Siblings
from hms_cache.admin.status import ServerStatus
from hms_cache.cache.reads.reasons import Reason
from hms_cache.cache.warming.prewarm import most_used
from tests.admin.running import TOKEN, Running
from tests.admin.test_commands import new_partition, new_table, read_all

OPERATIONS = Path(__file__).parents[2] / "docs" / "operations.md"
PATHS = {"/table/{name}": "/table/shop.sales"}
#: Elements without an end.
VOID = {"meta", "link", "br", "img", "input", "line", "circle", "polyline", "rect"}


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """For tests that change nothing."""
    yield from started(tmp_path_factory.mktemp("pages"))


@pytest.fixture
def changing(tmp_path: Path) -> Iterator[Running]:
    """For a test that changes something."""
    yield from started(tmp_path)


def started(directory: Path) -> Iterator[Running]:
    server = Running(directory, cache__warm="off")
    client = server.client
    client.create_database(ttypes.Database(name="shop"))
    client.create_table(new_table("sales", keys=("ds",)))
    client.create_table(new_table("plain"))
    client.add_partitions([new_partition(value) for value in ("1", "2", "3")])
    read_all(server)
    server.history.sample()
    read_all(server)
    server.history.sample()
    yield server
    server.close()


class Whole(HTMLParser):
    """Checks that elements are closed in order; collects text and what is loaded from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loaded += [value or "" for name, value in attrs if name == "src"]
        if tag in ("script", "link", "iframe", "object"):
            self.loaded.append(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open and self.open.pop() == tag, f"</{tag}> closes another element"

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def as_html(server: Running, path: str, post: bool = False) -> str:
    """The page as a browser gets it; well-formed, and loading nothing."""
    request = urllib.request.Request(f"{server.management}{path}", method="POST" if post else "GET")
    request.add_header("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
    if post:
        request.add_header("Authorization", f"Bearer {TOKEN}")
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.headers["content-type"].startswith("text/html")
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        text: str = answer.read().decode()
    parser = Whole()
    parser.feed(text)
    parser.close()
    assert parser.open == [] and parser.loaded == []
    return " ".join(" ".join(parser.text).split())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.template)
def test_json_is_the_pages_dataclass_and_html_shows_it(running: Running, page: Page) -> None:
    path = PATHS.get(page.path, page.path)
    status, text = running.ask(path)
    assert status == 200
    TypeAdapter(page.type).validate_json(text, strict=True)
    assert set(json.loads(text)) == set(page.type.__dataclass_fields__), "no field more, none less"
    assert json.loads(running.ask(f"{path}?format=json")[1]).keys() == json.loads(text).keys()
    assert page.title in as_html(running, path) or "shop.sales" in as_html(running, path)
    assert running.ask(f"{path}?format=html")[1].startswith("<!doctype html>")


def test_status_is_its_dataclass(running: Running) -> None:
    TypeAdapter(ServerStatus).validate_json(running.ask("/status")[1], strict=True)


def test_the_overview_shows_reads_calls_and_charts(running: Running) -> None:
    page = running.json("/")
    assert page["ready"] is True
    outcomes = {one["outcome"]: one["reads"] for one in page["outcomes"]}
    assert outcomes["miss"] >= 1 and sum(outcomes.values()) == sum(page["server"]["cache"]["reads"].values())
    assert page["calls"] >= 8 and page["resident_bytes"] > 10_000_000
    assert len(page["history"]) >= 2 and page["latency"]["p99_s"] >= page["latency"]["p50_s"] > 0
    text = as_html(running, "/")
    assert "create_table" in text and "answered from memory" in text
    assert running.ask("/?format=html")[1].count("<svg") >= 6


def test_every_outcome_of_a_read_is_explained() -> None:
    documented = set(re.findall(r"^\| `(\w+)` \| (?:memory|database) \|", OPERATIONS.read_text(), re.MULTILINE))
    assert documented == {reason.value for reason in Reason}
    assert set(MEANINGS) == set(Reason) and all(MEANINGS.values())


def test_events_show_position_durations_and_rates(running: Running) -> None:
    page = running.json("/events")
    assert page["status"]["status"] == "ACTIVE" and page["status"]["position"] == page["status"]["log_end"] == 4
    for kind in ("fetch", "apply"):
        found = page[kind]
        assert found["runs"] >= 1
        assert found["min_s"] <= found["median_s"] <= found["p95_s"] <= found["p99_s"] <= found["max_s"]
        assert found["min_s"] <= found["mean_s"] <= found["max_s"]
    assert page["database_error"] is None and page["last_errors"] == []
    assert {"received_per_s_1min", "received_per_s_5min", "received_per_s_15min"} <= page["status"].keys()


def test_the_cache_page_ranks_tables(running: Running) -> None:
    page = running.json("/cache")
    names = [one["name"] for one in page["largest"]]
    assert names == ["shop.sales", "shop.plain"]
    assert page["largest"][0]["bytes"] >= page["largest"][1]["bytes"] > 0
    sales = page["hottest"][0]
    assert sales["name"] == "shop.sales" and sales["partitions"] == 3 and sales["partitions_complete"] is True
    assert (sales["segments"], sales["segments_complete"]) == (1, 1)
    assert page["slowest"][0]["load_s"] > 0


def reads_of(server: Running, name: str) -> int:
    found: dict[str, int] = {one["name"]: one["reads"] for one in server.json("/cache")["hottest"]}
    return found.get(name, 0)


def test_the_hottest_table_is_the_one_read_most_however_it_was_answered(changing: Running) -> None:
    client = changing.client
    before = {name: reads_of(changing, name) for name in ("shop.plain", "shop.sales")}
    for _ in range(40):
        client.get_table("shop", "plain")
    reads = changing.json("/")["server"]["cache"]["reads"]
    assert changing.service.metrics.cache.reads.values()[("reply", "hit")] >= 38, reads
    (calls,) = (call for call in changing.json("/status")["calls"] if call["method"] == "get_table")
    assert calls["count"] >= calls["decoded"] + 38 and calls["decoded"] >= 1 and calls["mean_s"] > 0
    assert reads_of(changing, "shop.plain") == before["shop.plain"] + 40
    assert reads_of(changing, "shop.sales") == before["shop.sales"]
    assert changing.json("/cache")["hottest"][0]["name"] == "shop.plain"
    client.get_table_objects_by_name("shop", ["plain", "sales"])
    assert reads_of(changing, "shop.plain") == before["shop.plain"] + 41
    assert reads_of(changing, "shop.sales") == before["shop.sales"] + 1
    # A table that changes stays hot, although its entry and the cached answers are dropped at each change.
    changed = client.get_table("shop", "plain")
    changed.owner = "somebody else"
    client.alter_table("shop", "plain", changed)
    assert client.get_table("shop", "plain").owner == "somebody else"
    assert reads_of(changing, "shop.plain") == before["shop.plain"] + 43
    changing.command("flush")
    client.get_table("shop", "plain")
    assert changing.json("/table/shop.plain")["entry"]["reads"] == before["shop.plain"] + 44
    cache = changing.sources.cache
    assert cache is not None
    assert most_used(cache.shared)[0].table == "plain"


def test_a_tables_page_tells_its_cost_and_compares(running: Running) -> None:
    page = running.json("/table/shop.sales")
    assert page["cached"] and page["entry"]["fence"] <= page["position"]
    assert sum(one["bytes"] for one in page["bytes_by_facet"]) == page["entry"]["bytes"]
    assert page["impala"] == {
        "partitions": 3, "columns": 1, "files": 0, "blocks": 0, "bytes": 3 * 2048 + 3 * 400, "estimated_from": 3,
    }  # fmt: skip
    assert page["comparison"] is None
    status, text = running.ask("/table/shop.sales/compare", TOKEN, post=True)
    assert status == 200
    assert json.loads(text)["comparison"]["equal"] is True
    assert "0 differences" in as_html(running, "/table/shop.sales/compare", post=True)
    assert running.json("/table/shop.nowhere")["cached"] is False
    assert running.ask("/table/nonsense")[0] == 404
    assert running.ask("/table/shop.sales/compare")[0] == 405


@pytest.mark.parametrize("name", ["a/b", "a.b", "a.b/c.d", "../a", "a/compare/b", 'a"b', "a%2fb?c#d", "a b&amp;c"])
def test_a_table_of_any_name_has_its_page(changing: Running, name: str) -> None:
    """Hive accepts most ASCII characters in names: links of pages lead to the table, and its button compares it."""
    changing.client.create_table(new_table(name))
    changing.client.get_table("shop", name)
    status, cache = changing.ask("/cache?format=html")
    links = {unescape(link) for link in re.findall(r'href="(/table/[^"]*)"', cache)}
    found = [link for link in links if changing.json(link)["name"] == f"shop.{name}"]
    assert (status, len(found)) == (200, 1), links
    shown = changing.json(found[0])
    assert shown["cached"] and shown["table_id"] is not None
    page = changing.ask(f"{found[0]}?format=html")[1]
    (action,) = re.findall(r'action="([^"]*)"', page)
    status, text = changing.ask(unescape(action), TOKEN, post=True)
    assert (status, json.loads(text)["comparison"]["equal"]) == (200, True)
    again = changing.ask(f"{unescape(action)}?format=html", TOKEN, post=True)[1]
    assert re.findall(r'action="([^"]*)"', again) == [action]


def test_files_and_blocks_come_from_statistics(changing: Running) -> None:
    table = new_table("counted")
    table.parameters = {"numFiles": "3", "totalSize": str(5 * 128 * 1024 * 1024)}
    table.tableType = "EXTERNAL_TABLE"
    table.parameters["EXTERNAL"] = "TRUE"
    changing.client.create_table(table)
    changing.client.get_table("shop", "counted")
    found = changing.json("/table/shop.counted")["impala"]
    assert (found["partitions"], found["files"], found["blocks"]) == (1, 3, 5)
    assert found["bytes"] == 2048 + 400 + 3 * 500 + 5 * 150


@pytest.mark.parametrize("number", ["9" * 5_000, "9" * 4_000, "9" * 400, "9" * 19, "-1", "x", "\u0663", ""])
def test_statistics_of_any_text_leave_the_page_whole(changing: Running, number: str) -> None:
    """Clients write these parameters, too."""
    told = {"numFiles": number, "totalSize": number}
    plain = new_table("odd")
    plain.tableType, plain.parameters = "EXTERNAL_TABLE", {"EXTERNAL": "TRUE", **told}
    changing.client.create_table(plain)
    changing.client.create_table(new_table("odds", keys=("ds",)))
    partition = new_partition("1")
    partition.tableName, partition.parameters = "odds", told
    changing.client.add_partitions([partition])
    for name in ("odd", "odds"):
        assert changing.command("warm", f"database=shop&table={name}")[0]["ok"]
        assert changing.json(f"/table/shop.{name}")["impala"]["files"] == 0
        assert "Impala" in as_html(changing, f"/table/shop.{name}")


def test_operations_tell_who_did_what(changing: Running) -> None:
    changing.command("flush", "database=shop&table=plain")
    changing.ask("/table/shop.sales/compare", TOKEN, post=True)
    last = changing.json("/operations")["finished"]
    by_name: dict[str, Any] = {one["name"]: one for one in reversed(last)}
    assert by_name["flush"]["subject"] == "shop.plain" and by_name["flush"]["requested_by"] == "127.0.0.1"
    assert by_name["create_table"]["kind"] == "call" and "plain" in by_name["create_table"]["subject"]
    assert by_name["create_table"]["outcome"] == "ok" and by_name["create_table"]["duration_s"] > 0
    assert "get_table" not in by_name
    assert by_name["add_partitions"]["subject"] == "db=shop tbl=sales"
    column = ttypes.SQLPrimaryKey(table_db="shop", table_name="plain", column_name="id", key_seq=1, pk_name="k")
    changing.client.add_primary_key(ttypes.AddPrimaryKeyRequest([column]))
    assert changing.json("/operations")["finished"][0]["subject"] == "db=shop tbl=plain"
    with pytest.raises(ttypes.NoSuchObjectException):
        changing.client.drop_table("shop", "nowhere", True)
    assert changing.json("/operations")["finished"][0]["outcome"].startswith("NoSuchObjectException")
    operation = changing.sources.operations.begin("command", "warm", "everything", "a test")
    operation.done, operation.total = 3, 7
    assert "3 of 7" in as_html(changing, "/operations")
    changing.sources.operations.end(operation, "ok")


def test_operations_tell_whose_calls_keep_the_server_busy(changing: Running) -> None:
    changing.client.set_ugi("ann", [])
    with pytest.raises(ttypes.NoSuchObjectException):
        changing.client.get_table("shop", "nobodys")
    changing.client.get_table("shop", "plain")
    page = changing.json("/operations")
    users, tables = ({one["name"]: one for one in page[of]} for of in ("users", "tables"))
    assert users["ann"]["calls"] >= 1 and users["ann"]["busy_s"] > 0
    address = {one["name"]: one for one in page["addresses"]}["127.0.0.1"]
    assert address["calls"] >= users["ann"]["calls"] and address["loads"] >= 1
    assert address["connections"] >= 1 and address["sent_bytes"] > 0 and address["received_bytes"] > 0
    assert tables["shop.nobodys"]["calls"] == 1 and tables["shop.plain"]["calls"] >= 1
    before = address["sent_bytes"]
    reads = tables["shop.plain"]["reads"]
    for _ in range(5):
        changing.client.get_table("shop", "plain")
    page = changing.json("/operations")
    assert {one["name"]: one for one in page["tables"]}["shop.plain"]["reads"] > reads, "hits count for their table"
    assert {one["name"]: one for one in page["addresses"]}["127.0.0.1"]["sent_bytes"] > before, "and in the bytes"
    assert "Load by user" in (shown := as_html(changing, "/operations")) and "ann" in shown


def test_blind_spots_follow_the_peers(tmp_path: Path) -> None:
    server = Running(tmp_path, cache__peers="hive3")
    try:
        page = server.json("/blind-spots")
        cached = {one["kind"]: one["cached"] for one in page["kinds"]}
        assert page["peers"] == "hive3" and cached["tables"] and not cached["constraints"] and not cached["functions"]
        assert not cached["materialized views"]
    finally:
        server.close()


def test_pages_without_a_cache(tmp_path: Path) -> None:
    server = Running(tmp_path, cache__enabled=False)
    try:
        for page in PAGES:
            path = PATHS.get(page.path, page.path)
            TypeAdapter(page.type).validate_json(server.ask(path)[1], strict=True)
            as_html(server, path)
        assert "cache.enabled is false" in as_html(server, "/events")
        assert server.ask("/table/a.b/compare", TOKEN, post=True)[0] == 409
    finally:
        server.close()


def test_names_are_escaped(running: Running) -> None:
    text = running.ask("/table/shop.%3Cscript%3E?format=html")[1]
    assert "<script>" not in text and "&lt;script&gt;" in text


def test_a_paused_poller_shows_its_lag(changing: Running) -> None:
    changing.ask("/events/pause", TOKEN, post=True)
    try:
        changing.client.create_table(new_table("later"))
        changing.probe.forget()
        page = changing.json("/events")
        assert page["status"]["status"] == "PAUSED" and page["status"]["lag"] == 1
        changing.history.sample()
        assert changing.json("/")["history"][-1]["lag"] == 1
        assert "paused by an operator" in as_html(changing, "/events")
        assert "hms_cache_events_lag 1.0" in changing.ask("/metrics")[1]
        assert changing.json("/jsonmetrics")["events-processor.pending-events"] == 1
    finally:
        changing.ask("/events/resume", TOKEN, post=True)


ODD_NAMES = (
    "é",
    "山",
    "a%20b",
    "a%0D%0AX-Odd:%201",
    "a%3Fworker=0",
    "a%23b",
    "%252e",
    "%ff",
    "a%2Fb",
    "%00",
    "a%26b=c",
)


def test_a_page_that_is_handed_on_has_the_headers_of_a_page(tmp_path: Path) -> None:
    """A browser's connection reaches a random worker: the rights must not depend on it."""
    with ExitStack() as stack:
        workers = [stack.enter_context(closing(Running(tmp_path, Siblings(index, 2, tmp_path)))) for index in range(2)]
        for page, method, form in itertools.product(PAGES, ("GET", "HEAD"), ("html", "json")):
            requested = f"{PATHS.get(page.path, page.path)}?format={form}"
            found = [headers_of(worker, method, requested) for worker in workers]
            assert found[0] == found[1], (method, requested)
            assert found[0]["vary"] == "Accept" and "content-security-policy" in found[0]


def headers_of(running: Running, method: str, path: str) -> dict[str, str]:
    """Except for the date and the length, which depend on the time."""
    with urllib.request.urlopen(urllib.request.Request(running.management + path, method=method), timeout=30) as answer:
        named = {name.lower(): value for name, value in answer.headers.items()}
    return {name: value for name, value in named.items() if name not in ("date", "content-length")}


def test_links_of_a_page_lead_to_its_table_at_each_worker(tmp_path: Path) -> None:
    with ExitStack() as stack:
        workers = [stack.enter_context(closing(Running(tmp_path, Siblings(index, 2, tmp_path)))) for index in range(2)]
        for name in ODD_NAMES:
            path = f"/table/shop.{quote(name, safe='%')}"
            status, text = workers[0].ask(f"{path}?format=html")
            if status == 404:  # no table's name
                continue
            title = text.partition("<h1>")[2].partition("</h1>")[0]
            links = re.findall(r'href="(/table/[^"]*)"', text)
            assert len(links) == 2, name
            compared = workers[0].ask(f"{path}/compare?format=html", TOKEN, post=True)[1]
            assert re.findall(r'href="(/table/[^"]*)"', compared) == links, name
            for number, link in enumerate(links):
                status, there = workers[0].ask(f"{unescape(link)}&format=html")
                assert (status, there.partition("<h1>")[2].partition("</h1>")[0]) == (200, title), link
                assert f'{link}" aria-current="page">worker {number}</a>' in there, link


def test_workers_give_one_answer_whatever_a_table_is_called(tmp_path: Path) -> None:
    """The first one answers requests for any worker: the path must reach it unchanged."""
    with ExitStack() as stack:
        workers = [stack.enter_context(closing(Running(tmp_path, Siblings(index, 2, tmp_path)))) for index in range(2)]
        for name in ODD_NAMES:
            requested = f"/table/shop.{name if name.isascii() else quote(name)}"
            answers = [worker.ask(requested) for worker in workers]
            assert answers[0][0] in (200, 404), name
            assert answers[1] == answers[0], name
