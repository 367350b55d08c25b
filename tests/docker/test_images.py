"""The image and the compose file contain only what the program accepts, and run nothing as root."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass, field
from importlib import util
from pathlib import Path
from typing import Any

import pytest
import yaml

from hms_cache.authentication.servers import Address
from hms_cache.config import Settings, load
from hms_cache.config.settings import ENVIRONMENT_PREFIX
from tests.documentation.command_lines import SETTING_NAMES, parse

ROOT = Path(__file__).parents[2]
OWN_IMAGES = {"hms-cache": "server", "hms-cache-client": "client"}


@dataclass
class Stage:
    """One stage of a Dockerfile: its instructions in order."""

    name: str
    base: str
    instructions: list[tuple[str, str]] = field(default_factory=list)

    def all(self, keyword: str) -> list[str]:
        return [argument for word, argument in self.instructions if word == keyword]


def read_dockerfile() -> dict[str, Stage]:
    text = re.sub(r"^#.*\n", "", (ROOT / "docker/Dockerfile").read_text(), flags=re.MULTILINE)
    stages: dict[str, Stage] = {}
    variables: dict[str, str] = {}
    stage: Stage | None = None
    for line in text.replace("\\\n", " ").splitlines():
        if not line.strip():
            continue
        keyword, _, argument = line.strip().partition(" ")
        if keyword == "ARG":
            name, _, value = argument.partition("=")
            variables[name] = value
        elif keyword == "FROM":
            base, _, name = argument.partition(" AS ")
            stage = Stage(name, re.sub(r"\$\{(\w+)\}", lambda found: variables[found[1]], base))
            stages[name] = stage
        else:
            assert stage is not None
            stage.instructions.append((keyword, argument.strip()))
    return stages


def lineage(stages: dict[str, Stage], name: str) -> list[Stage]:
    """The stage and those it builds on, the outermost first."""
    found = []
    while name in stages:
        found.append(stages[name])
        name = stages[name].base
    return found


def last(stages: dict[str, Stage], name: str, keyword: str) -> str:
    for stage in lineage(stages, name):
        if stage.all(keyword):
            return stage.all(keyword)[-1]
    raise AssertionError(f"{name} has no {keyword}")


def environment_of(stages: dict[str, Stage], name: str) -> dict[str, str]:
    pairs = [
        pair for stage in reversed(lineage(stages, name)) for text in stage.all("ENV") for pair in shlex.split(text)
    ]
    return dict(pair.split("=", 1) for pair in pairs)


@pytest.fixture(scope="module")
def stages() -> dict[str, Stage]:
    return read_dockerfile()


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return loaded


def own_services(compose: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {name: service for name, service in compose["services"].items() if service["image"] in OWN_IMAGES}


def test_every_stage_builds_on_a_stage_or_on_python(stages: dict[str, Stage]) -> None:
    assert len(stages) > 2
    for stage in stages.values():
        assert stage.base in stages or re.fullmatch(r"python:3\.1[1-9]-slim(-\w+)?", stage.base)
        used = [found for _, text in stage.instructions for found in re.findall(r"from=(\w[\w-]*)", text)]
        assert set(used) <= set(stages)


def test_what_is_copied_is_there(stages: dict[str, Stage]) -> None:
    ignored = (ROOT / "docker/Dockerfile.dockerignore").read_text().splitlines()
    allowed = {line.removeprefix("!") for line in ignored if line.startswith("!")}
    copied = {source for stage in stages.values() for text in stage.all("COPY") for source in text.split()[:-1]}
    assert copied == allowed
    assert all((ROOT / name).exists() for name in copied)


@pytest.mark.parametrize("image", OWN_IMAGES.values())
def test_images_end_without_root(stages: dict[str, Stage], image: str) -> None:
    user, _, group = last(stages, image, "USER").partition(":")
    assert int(user) >= 1000 and int(group) >= 1000
    assert f"--uid {user} " in " ".join(stages["server"].all("RUN"))


def test_the_image_serves(stages: dict[str, Stage]) -> None:
    assert json.loads(last(stages, "server", "ENTRYPOINT")) == ["hms-cache"]
    assert parse(json.loads(last(stages, "server", "CMD"))).words == ("serve",)
    defaults = Settings()
    assert last(stages, "server", "EXPOSE").split() == [str(defaults.server.port), str(defaults.admin.port)]


def test_the_health_check_asks_the_management_port(stages: dict[str, Stage]) -> None:
    command = json.loads(last(stages, "server", "HEALTHCHECK").partition("CMD ")[2])
    compile(command[2], "health check", "exec")
    assert f":{Settings().admin.port}/livez'" in command[2]


def test_the_environment_of_the_image_is_sound(stages: dict[str, Stage]) -> None:
    variables = environment_of(stages, "server")
    own = {name: value for name, value in variables.items() if name.startswith("HMS_CACHE")}
    settings = load(environment=own).settings
    assert settings.server.host == settings.admin.host == "0.0.0.0"
    assert settings.log.format == "json"


def test_the_clients_command_is_a_module_of_ours(stages: dict[str, Stage], compose: dict[str, Any]) -> None:
    assert json.loads(last(stages, "client", "ENTRYPOINT")) == ["python", "-m"]
    default = json.loads(last(stages, "client", "CMD"))[0]
    module, uris, warehouse = compose["services"]["client"]["command"]
    assert module == default and util.find_spec(module) is not None
    for address in map(Address.parse, uris.split(",")):
        assert compose["services"][address.host]["command"] == ["serve"]
        assert address.port == Settings().server.port
    assert warehouse == environment_of(stages, "server")[f"{ENVIRONMENT_PREFIX}WAREHOUSE__DIRECTORY"]


def test_services_are_hardened(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert int(service["user"].partition(":")[0]) > 0, name
        assert not service.get("privileged"), name


def test_services_of_ours_build_a_stage_and_run_as_its_user(compose: dict[str, Any], stages: dict[str, Stage]) -> None:
    for name, service in own_services(compose).items():
        assert service["build"]["target"] == OWN_IMAGES[service["image"]], name
        assert (ROOT / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
        assert service["user"] == last(stages, service["build"]["target"], "USER"), name


@pytest.mark.parametrize("service_name", ["schema", "one", "other"])
def test_the_program_takes_command_and_settings_of_a_service(
    compose: dict[str, Any], stages: dict[str, Stage], service_name: str, tmp_path: Path
) -> None:
    service = compose["services"][service_name]
    line = parse(service["command"])
    assert line.words in {("serve",), ("schema", "init")}
    password = ROOT / compose["secrets"]["database-password"]["file"]
    variables = environment_of(stages, "server") | service["environment"]
    variables = {name: value for name, value in variables.items() if name.startswith("HMS_CACHE")}
    names = {name.removeprefix(ENVIRONMENT_PREFIX).lower().replace("__", ".", 1) for name in variables}
    assert names <= SETTING_NAMES
    key = f"{ENVIRONMENT_PREFIX}DATABASE__PASSWORD_FILE"
    assert variables[key] == "/run/secrets/database-password"
    settings = load(environment=variables | {key: str(password)}, command_line=line.settings).settings
    assert settings.database.url.endswith("://hive@database:3306/metastore")
    mounted = [volume.partition(":")[2] for volume in service["volumes"]]
    assert settings.warehouse.directory.removeprefix("file:") in mounted


def test_servers_take_the_account_that_the_database_makes(compose: dict[str, Any]) -> None:
    database = compose["services"]["database"]["environment"]
    for name in ("schema", "one", "other"):
        url = compose["services"][name]["environment"][f"{ENVIRONMENT_PREFIX}DATABASE__URL"]
        assert f"//{database['MARIADB_USER']}@database:3306/{database['MARIADB_DATABASE']}" in url
        assert compose["services"][name]["secrets"] == compose["services"]["database"]["secrets"]


def test_published_ports_are_the_servers_and_clash_with_none(compose: dict[str, Any]) -> None:
    taken = [port for service in compose["services"].values() for port in service.get("ports", ())]
    parts = [port.split(":") for port in taken]
    assert all(address == "127.0.0.1" for address, _, _ in parts)
    assert {int(inside) for _, _, inside in parts} == {Settings().server.port, Settings().admin.port}
    outside = [port for _, port, _ in parts]
    assert len(outside) == len(set(outside)) == 4


def test_servers_wait_for_the_schema_and_are_stopped_later_than_they_drain(compose: dict[str, Any]) -> None:
    services = compose["services"]
    for name in ("one", "other"):
        assert services[name]["depends_on"] == {"schema": {"condition": "service_completed_successfully"}}
        assert int(services[name]["stop_grace_period"].removesuffix("s")) > Settings().server.drain_timeout_s
        assert f":{Settings().admin.port}/readyz'" in services[name]["healthcheck"]["test"][3]
    assert services["schema"]["depends_on"] == {"database": {"condition": "service_healthy"}}
    for service in services.values():
        assert set(service.get("depends_on", ())) <= set(services)
        named = {volume.partition(":")[0] for volume in service.get("volumes", ())}
        assert named <= set(compose["volumes"])


def test_docker_compose_reads_it() -> None:
    if (
        shutil.which("docker") is None
        or subprocess.run(["docker", "compose", "version"], capture_output=True).returncode
    ):
        pytest.skip("no docker compose here")
    shown = subprocess.run(
        ["docker", "compose", "--profile", "client", "config", "--quiet"], cwd=ROOT, capture_output=True, text=True
    )
    assert shown.returncode == 0, shown.stderr
