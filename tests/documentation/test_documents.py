"""What the documents mention exists, and what exists is in the documents."""

from __future__ import annotations

import importlib
import inspect
import re
import shlex
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import click
import pytest
import yaml
from starlette.routing import Route

from hms_cache.admin.application import build_application
from hms_cache.authentication.servers import Address
from hms_cache.cache.reads.reasons import Reason
from hms_cache.config import Settings, load
from hms_cache.config.settings import ENVIRONMENT_PREFIX
from hms_cache.jobs.registry import JOBS
from hms_cache.jobs.schedule.report import METRICS
from hms_cache.metrics import Metrics
from hms_cache.notifications.event_types import EventType
from hms_cache.notifications.poller_status import PollerStatus
from tests.documentation.command_lines import SETTING_NAMES, all_commands, parse
from tests.documentation.pages import GENERATED, ROOT, Page, page, pages

OPERATIONS = page("operations.md")
CONSISTENCY = page("consistency.md")
COMMANDS = {" ".join(("hms-cache", *words)): command for words, command in all_commands()}
PROMISES = {f"P{number}" for number in range(1, 13)}
SECTIONS = {name.partition(".")[0] for name in SETTING_NAMES}
#: Files whose names look like settings.
NOT_SETTINGS = re.compile(r"\.(toml|md|xml|py)$")


def all_pages() -> list[Any]:
    return [pytest.param(one, id=one.name) for one in pages()]


def prometheus_names() -> set[str]:
    """The names in `/metrics`, with and without suffixes of their types."""
    text = Metrics().text().decode()
    found = re.findall(r"^# TYPE (\S+) (\w+)$", text, re.MULTILINE)
    return {name for name, _ in found} | {f"{name}_bucket" for name, kind in found if kind == "histogram"}


def routes() -> set[str]:
    """The management port's paths. Building the application hands its parts on and calls none of them."""
    parts = [MagicMock() for _ in inspect.signature(build_application).parameters]
    return {route.path_format for route in build_application(*parts).routes if isinstance(route, Route)}


# ---- from the code to the documents


def test_each_command_has_its_heading_and_each_heading_its_command() -> None:
    headings = {heading for heading in OPERATIONS.headings if heading.startswith("hms-cache ")}
    assert headings == set(COMMANDS)


def test_each_job_is_a_command() -> None:
    assert {f"hms-cache jobs {name}" for name in JOBS} <= set(COMMANDS)


def test_each_path_of_the_management_port_is_listed_and_no_other() -> None:
    assert set(OPERATIONS.first_column("The management port")) == routes()


def test_each_event_type_is_listed_and_no_other() -> None:
    listed = CONSISTENCY.first_column("Event types")
    assert len(listed) == len(set(listed))
    assert set(listed) == {kind.value for kind in EventType}


def test_each_status_of_the_poller_is_listed_and_no_other() -> None:
    assert CONSISTENCY.first_column("Status of the event poller") == [status.value for status in PollerStatus]


def test_each_outcome_of_a_read_is_listed_and_no_other() -> None:
    assert set(OPERATIONS.first_column("How reads were answered")) == {reason.value for reason in Reason}


def test_each_setting_and_metric_has_its_entry() -> None:
    assert {heading for heading in page("configuration.md").headings if "." in heading} == SETTING_NAMES
    assert prometheus_names() >= set(re.findall(r"^\| `(hms_cache_\w+)`", page("metrics.md").text, re.MULTILINE))


def test_each_promise_has_its_heading() -> None:
    headings = [heading.partition(" ")[0] for heading in CONSISTENCY.headings]
    assert {heading for heading in headings if re.fullmatch(r"P\d+", heading)} == PROMISES


def test_each_promise_is_kept_somewhere_and_none_is_invented() -> None:
    named: set[str] = set()
    for path in [*ROOT.glob("hms_cache/**/*.py"), *ROOT.glob("tests/**/*.py"), *(one.path for one in pages())]:
        if "thrift_gen" not in path.parts and path.parent.name != "documentation":
            named |= set(re.findall(r"[( ](P\d{1,2})(?=[),:. ]|$)", path.read_text(encoding="utf-8"), re.MULTILINE))
    assert named == PROMISES


def test_each_document_is_in_the_index() -> None:
    index = page("README.md")
    linked = {file.rstrip("/") for file, _ in index.links()}
    expected = {path.name for path in index.path.parent.glob("*.md")} - {"README.md"}
    assert expected <= linked


# ---- from the documents to the code


@pytest.mark.parametrize("document", all_pages())
def test_links_lead_somewhere(document: Page) -> None:
    for file, anchor in document.links():
        target = document.path.parent / file if file else document.path
        assert target.exists(), f"{document.name}: {file}"
        if anchor:
            assert anchor in Page(target).anchors, f"{document.name}: {file}#{anchor}"


@pytest.mark.parametrize("document", all_pages())
def test_settings_that_are_named_exist(document: Page) -> None:
    spans = [span for text in document.spans for span in re.split(r"\s*=\s*", text)]
    named = {span for span in spans if re.fullmatch(rf"(?:{'|'.join(SECTIONS)})\.[a-z0-9_]+", span)}
    assert {name for name in named if not NOT_SETTINGS.search(name)} <= SETTING_NAMES
    variables = re.findall(rf"\b{ENVIRONMENT_PREFIX}([A-Z0-9_]+)", document.text)
    assert {name.lower().replace("__", ".", 1) for name in variables} - {"section.key"} <= SETTING_NAMES


@pytest.mark.parametrize("document", all_pages())
def test_metrics_that_are_named_exist(document: Page) -> None:
    named = set(re.findall(r"`(hms_cache_\w+)", document.text))
    assert named <= prometheus_names() | METRICS.keys()


@pytest.mark.parametrize("document", all_pages())
def test_commands_in_blocks_are_accepted(document: Page) -> None:
    for block in document.blocks:
        if block.language in ("", "bash", "sh"):
            for line in block.text.splitlines():
                words = shlex.split(line, comments=True)
                if words and words[0] in ("hms-cache", ".venv/bin/hms-cache"):
                    parse(words[1:])


def test_servers_of_a_site_that_moves_over_are_reached_by_its_clients() -> None:
    """A site file does not contain the address to listen on, and the default is this machine only."""
    lines = [line for block in page("migrate.md").blocks for line in block.text.splitlines()]
    served = [line for line in lines if line.startswith("hms-cache serve")]
    assert len(served) >= 2 and all("--host 0.0.0.0" in line for line in served), served


@pytest.mark.parametrize("document", all_pages())
def test_commands_in_the_text_are_accepted(document: Page) -> None:
    """A placeholder in capitals stands for a number or a name; a required value may be missing."""
    for span in document.spans:
        if not re.match(r"hms-cache [a-z]", span) or re.search(r"[|…]", span):
            continue
        words = [re.sub(r"^[A-Z_]+$", "1", word) for word in shlex.split(span)[1:]]
        try:
            parse(words)
        except (click.MissingParameter, click.BadOptionUsage):
            continue
        except click.UsageError as error:
            pytest.fail(f"{document.name}: `{span}`: {error.format_message()}")


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_options_in_the_section_of_a_command_are_its_own(name: str) -> None:
    own = {option for parameter in COMMANDS[name].params for option in parameter.opts}
    text = re.sub(r"`hms-cache [^`]*`", "", OPERATIONS.section(name))
    assert set(re.findall(r"`(--[a-z-]+)", text)) <= own | {"--json"}


@pytest.mark.parametrize("document", all_pages())
def test_python_in_documents_compiles_and_what_it_imports_of_ours_is_there(document: Page) -> None:
    for block in document.blocks:
        if block.language == "python":
            compile(block.text, document.name, "exec")
            for module, names in re.findall(r"^from (hms_cache[\w.]*) import (.+)$", block.text, re.MULTILINE):
                for name in re.split(r",\s*", names):
                    assert hasattr(importlib.import_module(module), name), f"{document.name}: {module}.{name}"


def test_generated_documents_say_so() -> None:
    for name in GENERATED:
        assert "make generate" in page(name).text


# ---- the Kubernetes example


def kubernetes() -> list[dict[str, Any]]:
    (block,) = (block for block in OPERATIONS.blocks if block.language == "yaml")
    return list(yaml.safe_load_all(block.text))


def test_the_kubernetes_example_runs_our_command_with_our_settings_and_probes_our_port() -> None:
    pods, service, budget = kubernetes()
    pod = pods["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert parse(container["args"]).words == ("serve",)
    variables = {entry["name"]: entry["value"] for entry in container["env"]}
    names = {name.removeprefix(ENVIRONMENT_PREFIX).lower().replace("__", ".", 1) for name in variables}
    assert names <= SETTING_NAMES
    defaults = Settings()
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"thrift": defaults.server.port, "management": defaults.admin.port}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        requested = container[probe]["httpGet"]
        assert requested["path"] in routes() and requested["port"] in ports
    assert container["livenessProbe"]["httpGet"]["path"] == "/livez"
    assert pod["terminationGracePeriodSeconds"] > defaults.server.drain_timeout_s
    labels = pods["spec"]["selector"]["matchLabels"]
    assert labels == pods["spec"]["template"]["metadata"]["labels"] == service["spec"]["selector"]
    assert labels == budget["spec"]["selector"]["matchLabels"]
    assert pods["spec"]["serviceName"] == service["metadata"]["name"]
    uris = variables[f"{ENVIRONMENT_PREFIX}SERVER__ADVERTISED_URIS"].split(",")
    assert [Address.parse(uri).host for uri in uris] == [
        f"{pods['metadata']['name']}-{number}.{service['metadata']['name']}"
        for number in range(pods["spec"]["replicas"])
    ]
    settings = load(environment={name: value for name, value in variables.items() if "_FILE" not in name}).settings
    assert settings.database.url.endswith("database:3306/metastore")


def test_the_kubernetes_example_is_hardened() -> None:
    pod = kubernetes()[0]["spec"]["template"]["spec"]
    context = pod["containers"][0]["securityContext"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert context["readOnlyRootFilesystem"] is True and context["allowPrivilegeEscalation"] is False
    assert context["capabilities"] == {"drop": ["ALL"]}
    mounted = {mount["name"] for mount in pod["containers"][0]["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]}


def test_no_text_refers_to_documents_that_a_reader_does_not_have() -> None:
    """A page or a comment only refers to files in this repository."""
    unknown = re.compile(r"\bDESIGN\b|\((?:seed \d, |research )[^)]*\)|\bresearch [a-z]\.\d")
    sources = [path for folder in ("hms_cache", "tests", "benchmarks", "docs") for path in (ROOT / folder).rglob("*.*")]
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sources
        if path.suffix in {".py", ".md", ".html", ".toml"} and path != Path(__file__)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if unknown.search(line)
    ]
    assert found == []


def test_each_page_has_its_place_in_the_site() -> None:
    """The site (`make docs`) shows all of docs/, and nothing twice."""
    text = (ROOT / "mkdocs.yml").read_text()
    named = re.findall(r"^ +- (?:[^:]+: )?(\S+\.md)$", text, re.MULTILINE)
    assert sorted(named) == sorted(str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md"))


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "evidence").glob("[a-z]*.md")), ids=lambda path: path.name)
def test_evidence_says_of_when_it_is(path: Path) -> None:
    """A figure is useless without the state of the code at which it was measured."""
    text = path.read_text()
    assert len(text.split()) > 100, "nothing was measured"
    assert re.search(r"\b20\d\d-\d\d-\d\d\b|\bat (?=[a-z]*\d)[0-9a-f]{7,40}\b", text), "no date, and no commit"
