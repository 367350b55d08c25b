"""The sources of values, their precedence, and what is refused."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

from hms_cache.authentication.listener_tokens import ListenerTokens
from hms_cache.authorization.policy_file import PolicyFile
from hms_cache.cli.management_port import token_of
from hms_cache.config import Configuration, Settings, load
from hms_cache.config.secrets import redacted
from hms_cache.config.settings import SettingReference, all_settings
from hms_cache.errors import ConfigurationError
from hms_cache.jobs.schedule.plan import read_plan

SITE = """<?xml version="1.0"?>
<configuration>
  <property><name>metastore.thrift.port</name><value>9003</value></property>
  <property><name>hive.metastore.port</name><value>9004</value></property>
  <property><name>javax.jdo.option.ConnectionURL</name>
    <value>jdbc:mysql://${env.DB_HOST}/hive?useSSL=false&amp;x=y</value></property>
  <property><name>javax.jdo.option.ConnectionUserName</name><value>hive</value></property>
  <property><name>javax.jdo.option.ConnectionPassword</name><value>hush</value></property>
  <property><name>hive.txn.timeout</name><value>10m</value></property>
  <property><name>fs.trash.interval</name><value>360</value></property>
  <property><name>hive.metastore.limit.partition.request</name><value>50</value></property>
  <property><name>hive.metastore.event.message.factory</name>
    <value>org.apache.hadoop.hive.metastore.messaging.json.gzip.GzipJSONMessageEncoder</value></property>
  <property><name>metastore.warehouse.external.dir</name><value>hdfs://nn/${area}/external/</value></property>
  <property><name>area</name><value>lake</value></property>
  <property><name>hive.metastore.warehouse.dir</name><value></value></property>
  <property><name>something.of.ours</name><value>kept</value></property>
</configuration>
"""


@pytest.fixture
def site_file(tmp_path: Path) -> Path:
    path = tmp_path / "metastore-site.xml"
    path.write_text(SITE)
    return path


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@pytest.mark.parametrize("empty", ["", " "])
@pytest.mark.parametrize("name", ["warehouse.directory", "warehouse.allowed_locations"])
def test_what_names_no_directory_is_told_and_no_trace_of_the_start(name: str, empty: str) -> None:
    value = (empty, "/data") if name.endswith("s") else empty
    with pytest.raises(ConfigurationError, match="must name a directory") as caught:
        load(command_line={name: value}, environment={})
    assert name in str(caught.value)


def test_each_source_wins_over_the_next(tmp_path: Path, site_file: Path) -> None:
    toml = write(tmp_path / "c.toml", "[server]\nport = 9002\n")
    environment = {"HMS_CACHE__SERVER__PORT": "9001", "DB_HOST": "db"}

    def port(**sources: object) -> tuple[int, str]:
        configuration = load(**sources)  # type: ignore[arg-type]
        return configuration.settings.server.port, configuration.origin("server.port")

    everything = {"environment": environment, "config_file": toml, "site_files": [site_file]}
    assert port(command_line={"server.port": 9000}, **everything) == (9000, "command line")
    assert port(command_line={"server.port": None}, **everything) == (9001, "HMS_CACHE__SERVER__PORT")
    assert port(config_file=toml, site_files=[site_file], environment={}) == (9002, str(toml))
    assert port(site_files=[site_file], environment={}) == (9003, f"{site_file} (metastore.thrift.port)")
    assert port(environment={}) == (9083, "default")


def test_a_site_file_sets_what_its_keys_stand_for(site_file: Path) -> None:
    configuration = load(site_files=[site_file], environment={"DB_HOST": "db1"})
    settings = configuration.settings
    assert settings.database.url == "mysql+pymysql://db1/hive?ssl_mode=DISABLED"
    assert settings.database.sqlalchemy_url() == "mysql+pymysql://hive:hush@db1/hive?ssl_mode=DISABLED"
    assert settings.transactions.timeout_s == 600
    assert settings.warehouse.trash_interval_min == 360
    assert settings.warehouse.external_directory == "hdfs://nn/lake/external"
    assert configuration.origin("warehouse.directory") == "default", "an empty value is no value"
    assert settings.catalog.partition_request_limit == 50
    assert settings.events.message_format == "gzip(json-2.0)"
    assert configuration.site["something.of.ours"] == "kept"


@pytest.mark.parametrize(
    ("file_system", "directory", "expected"),
    [
        ("file:///", "/user/hive/warehouse", "file:/user/hive/warehouse"),
        ("hdfs://nn:8020", "/user/hive/warehouse", "hdfs://nn:8020/user/hive/warehouse"),
        ("hdfs://nn:8020/", "/w/", "hdfs://nn:8020/w"),
        ("hdfs://nn:8020", "s3a://bucket/w", "s3a://bucket/w"),
        ("hdfs://nn:8020", "file:/w", "file:/w"),
        ("file:///", "hdfs:/w", "hdfs:/w"),
    ],
)
def test_a_directory_without_a_scheme_lies_on_the_default_file_system(
    file_system: str, directory: str, expected: str
) -> None:
    names = {"warehouse.default_file_system": file_system, "warehouse.directory": directory}
    settings = load(command_line={**names, "warehouse.allowed_locations": directory}, environment={}).settings
    assert settings.warehouse.directory == expected
    assert settings.warehouse.allowed_locations == (expected,)


@pytest.mark.parametrize("variable", ["HMS_CACHE__SERVER__PORT", "hms_cache__server__port", "Hms_Cache__Server__Port"])
def test_a_variable_may_be_in_any_case(variable: str) -> None:
    configuration = load(environment={variable: "9001"})
    assert (configuration.settings.server.port, configuration.origin("server.port")) == (9001, variable)


def test_a_later_site_file_wins_unless_the_earlier_says_final(tmp_path: Path) -> None:
    def one(name: str, properties: str) -> Path:
        return write(tmp_path / name, f"<configuration>{properties}</configuration>")

    first = one(
        "a.xml",
        "<property><name>a</name><value>1</value><final>true</final></property>"
        "<property><name>b</name><value>1</value></property>",
    )
    second = one(
        "b.xml",
        "<property><name>a</name><value>2</value></property><property><name>b</name><value>2</value></property>",
    )
    assert load(site_files=[first, second], environment={}).site == {"a": "1", "b": "2"}


def test_a_property_that_names_itself_does_not_hang(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.xml",
        "<configuration><property><name>a</name><value>x${a}</value></property>"
        "<property><name>b</name><value>${nobody.knows}</value></property></configuration>",
    )
    site = load(site_files=[path], environment={}).site
    assert site["a"].startswith("xx")
    assert site["b"] == "${nobody.knows}"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("HMS_CACHE__SERVER__PROT", "server.port"),
        ("HMS_CACHE__CACHE__MAX_STALENESS", "cache.max_staleness_ms"),
        ("HMS_CACHE__SERVE__PORT", "server.port"),
        ("HMS_CACHE__SERVER__MAX_WAITING_PER_LANE", "server.max_waiting_per_pool"),  # its name in 0.1.0
        ("HMS_CACHE__SERVER__TRASH_INTERVAL_MIN", "warehouse.trash_interval_min"),
    ],
)
def test_an_unknown_name_is_an_error_with_a_suggestion(name: str, hint: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(environment={name: "1"})
    assert caught.value.problems[0].startswith(name)
    assert caught.value.problems[0].endswith(f"did you mean {hint}?")


def test_all_problems_are_told_at_once_each_with_its_place(tmp_path: Path) -> None:
    toml = write(tmp_path / "c.toml", 'loose = 1\n[server]\nport = 123456\n[cache]\npeers = "hive2"\n')
    with pytest.raises(ConfigurationError) as caught:
        load(
            command_line={"database.url": "jdbc:derby:x"},
            config_file=toml,
            site_files=[tmp_path / "absent.xml"],
            environment={"HMS_CACHE__LOG__LEVEL": "loud", "HMS_CACHE__SERVER__HOTS": "x"},
        )
    text = "\n".join(caught.value.problems)
    for expected in (
        "command line",
        "Derby",
        f"server.port ({toml})",
        f"cache.peers ({toml})",
        "loose is not in a",
        "absent.xml: cannot be read",
        "log.level (HMS_CACHE__LOG__LEVEL)",
        "HMS_CACHE__SERVER__HOTS",
    ):
        assert expected in text
    assert len(caught.value.problems) == 7


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("a.toml", "[server\n", "is not TOML"),
        ("a.xml", "<configuration>", "is not XML"),
        ("a.xml", "<html/>", "is not a Hadoop configuration"),
    ],
)
def test_a_file_of_another_kind_is_refused_by_name(tmp_path: Path, name: str, text: str, why: str) -> None:
    path = write(tmp_path / name, text)
    files = {"config_file": path} if name.endswith("toml") else {"site_files": [path]}
    with pytest.raises(ConfigurationError, match=why) as caught:
        load(environment={}, **files)  # type: ignore[arg-type]
    assert str(path) in str(caught.value)


def test_the_mark_that_some_editors_begin_a_file_with_is_no_part_of_it(tmp_path: Path) -> None:
    """Editors of Windows write U+FEFF before the first line; a password would contain it."""
    mark = "\ufeff"
    secret = write(tmp_path / "password", f"{mark}hush\n")
    policy = write(tmp_path / "policy.toml", f'{mark}[groups]\nanalysts = ["ann"]\n')
    tokens = write(tmp_path / "tokens", f"{mark}ann {'a' * 64}\n")
    for file in (secret, policy, tokens):
        file.chmod(0o600)
    plan = write(tmp_path / "plan.toml", f'{mark}metastore = "thrift://h:1"\n[[job]]\njob = "statistics"\n')
    configuration = load(
        config_file=write(tmp_path / "c.toml", f"{mark}[server]\nport = 9002\n"),
        command_line={"database.url": "postgresql://hive@db/hive", "database.password_file": str(secret)},
        environment={},
    )
    assert configuration.settings.server.port == 9002
    assert configuration.settings.database.password.get_secret_value() == "hush"
    assert token_of(secret) == "hush"
    assert [step.job.name for step in read_plan(plan, {}).steps] == ["statistics"]
    PolicyFile(policy)
    assert len(ListenerTokens.read(tokens)) == 1


def test_a_secret_comes_from_the_first_line_of_its_file(tmp_path: Path) -> None:
    secret = write(tmp_path / "password", "hush\nsecond line\n")
    configuration = load(
        command_line={"database.url": "postgresql://hive@db/hive"},
        environment={"HMS_CACHE__DATABASE__PASSWORD_FILE": str(secret)},
    )
    assert configuration.settings.database.sqlalchemy_url() == "postgresql+psycopg://hive:hush@db/hive"
    assert configuration.origin("database.password") == f"first line of {secret}"


SECRETS = [reference for reference in all_settings() if reference.field.annotation is SecretStr]


@pytest.mark.parametrize("secret", SECRETS, ids=lambda secret: secret.name)
@pytest.mark.parametrize("source", ["file", "command"])
def test_each_secret_comes_from_its_file_or_its_command_and_is_masked_by_value(
    tmp_path: Path, secret: SettingReference, source: str
) -> None:
    file = write(tmp_path / "secret", f"never to be seen {secret.name} {source}\n")
    given = str(file) if source == "file" else f"cat {file}"
    configuration = load(command_line={f"{secret.name}_{source}": given}, environment={})
    value = getattr(getattr(configuration.settings, secret.section), secret.key)
    assert value.get_secret_value() == f"never to be seen {secret.name} {source}"
    assert redacted(f"a driver says: {value.get_secret_value()}") == "a driver says: ***"


COMMANDS = [reference for reference in all_settings() if reference.key.endswith("_command")]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_of_a_command_its_program_is_shown(command: SettingReference) -> None:
    """Its arguments were shown to all who may see the settings."""
    configuration = load(command_line={command.name: "printf %s.%s one-time code"}, environment={})
    shown = {name: value for name, value, _ in configuration.rows()}
    assert shown[command.name] == "printf ***"
    assert "one-time" not in "".join(shown.values())


def test_passwords_of_every_address_are_masked() -> None:
    configuration = load(command_line={"authorization.opa_url": "https://u:never-seen@opa/v1"}, environment={})
    shown = {name: value for name, value, _ in configuration.rows()}
    assert shown["authorization.opa_url"] == "https://u:***@opa/v1"
    assert redacted("a driver says: never-seen") == "a driver says: ***"


@pytest.mark.parametrize(
    ("environment", "why"),
    [
        ({"HMS_CACHE__ADMIN__TOKEN_FILE": "absent"}, "cannot be read"),
        ({"HMS_CACHE__ADMIN__TOKEN_FILE": "empty"}, "is empty"),
        ({"HMS_CACHE__ADMIN__TOKEN_FILE": "full", "HMS_CACHE__ADMIN__TOKEN": "x"}, "remove one of them"),
    ],
)
def test_a_secret_file_that_cannot_serve_is_a_problem(
    tmp_path: Path, environment: dict[str, str], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "empty", "\n")
    write(tmp_path / "full", "token\n")
    with pytest.raises(ConfigurationError, match=why):
        load(environment=environment)


def test_no_secret_is_shown(tmp_path: Path) -> None:
    configuration = load(
        command_line={"database.url": "mysql://u:hush1@db/hive"},
        environment={"HMS_CACHE__ADMIN__TOKEN": "hush2", "HMS_CACHE__DATABASE__PASSWORD": "hush3"},
    )
    shown = "\n".join(f"{name} {value} {origin}" for name, value, origin in configuration.rows())
    assert "hush" not in shown + repr(configuration.settings.admin) + repr(configuration.settings.database.password)
    assert shown.count("***") == 3


def test_the_config_file_may_be_named_by_the_environment(tmp_path: Path) -> None:
    toml = write(tmp_path / "c.toml", "[cache]\nmax_staleness_ms = inf\nexclude = ['tmp.*']\n")
    settings = load(environment={"HMS_CACHE_CONFIG": str(toml)}).settings
    assert settings.cache.max_staleness_ms == math.inf
    assert settings.cache.exclude == ("tmp.*",)


def test_numbers_with_units_are_converted_to_the_settings_own() -> None:
    settings = load(
        environment={
            "HMS_CACHE__CACHE__MAX_STALENESS_MS": "2s",
            "HMS_CACHE__CACHE__BUDGET_BYTES": "2 GiB",
            "HMS_CACHE__EVENTS__POLL_INTERVAL_S": "250ms",
            "HMS_CACHE__WAREHOUSE__TRASH_INTERVAL_MIN": "1d",
            "HMS_CACHE__CACHE__INCLUDE": "sales.*, hr.people",
        }
    ).settings
    assert settings.cache.max_staleness_ms == 2000
    assert settings.cache.budget_bytes == 2 * 1024**3
    assert settings.events.poll_interval_s == 0.25
    assert settings.warehouse.trash_interval_min == 1440
    assert settings.cache.include == ("sales.*", "hr.people")


def test_the_tree_is_frozen_and_closed() -> None:
    settings = Settings()
    with pytest.raises(ValidationError):
        settings.server.port = 1
    with pytest.raises(ValidationError):
        Settings.model_validate({"server": {"no_such": 1}})


def test_the_management_port_must_be_another_one() -> None:
    with pytest.raises(ConfigurationError, match=r"admin\.port must differ"):
        load(environment={"HMS_CACHE__ADMIN__PORT": "9083"})
    both_free = {"HMS_CACHE__ADMIN__PORT": "0", "HMS_CACHE__SERVER__PORT": "0"}
    assert load(environment=both_free).settings.admin.port == 0


def test_a_local_directory_becomes_a_location_as_hadoop_writes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    warehouse = load(environment={}).settings.warehouse
    assert warehouse.directory == f"file:{tmp_path}/warehouse"
    assert warehouse.external_or_managed_directory == warehouse.directory
    warehouse = load(command_line={"warehouse.directory": "s3a://bucket/lake/"}, environment={}).settings.warehouse
    assert warehouse.directory == "s3a://bucket/lake"


def test_a_reload_tells_what_a_running_server_can_take() -> None:
    before: Configuration = load(environment={})
    after = load(environment={"HMS_CACHE__SERVER__PORT": "1", "HMS_CACHE__LOG__LEVEL": "debug"}).settings
    assert before.reloadable_changes(after) == (["log.level"], ["server.port"])
