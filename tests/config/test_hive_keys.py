"""Each setting of Hive's metastore is classified: mapped, without meaning, not honored, or refused."""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from hms_cache.config import Configuration, HiveValues, load
from hms_cache.config.hive_keys import HiveKey, hive_keys, is_metastore_key, keys_by_spelling
from hms_cache.config.setting import facts_of
from hms_cache.config.settings import all_settings
from hms_cache.config.site_file import read_site_files, settings_by_site_key
from hms_cache.errors import ConfigurationError

REAL_SITE = Path(__file__).parent / "data" / "hive-site.xml"

SPELLINGS = sorted((name, key) for name, key in keys_by_spelling().items())
UNMAPPED = [(name, key) for name, key in SPELLINGS if key.action != "mapped"]


def site_of(directory: Path, properties: dict[str, str]) -> Path:
    file = directory / "hive-site.xml"
    lines = "".join(
        f"<property><name>{escape(name)}</name><value>{escape(value)}</value></property>"
        for name, value in properties.items()
    )
    file.write_text(f"<configuration>{lines}</configuration>")
    return file


def loaded(site: Path, *, accept: bool = False) -> Configuration:
    return load(site_files=[site], command_line={"security.accept_insecure": accept}, environment={})


def another_value(key: HiveKey) -> str:
    """A value other than the one in force."""
    opposite = {"true": "false", "false": "true"}
    default = key.in_force[0] if key.in_force else key.default
    return opposite.get(default.lower(), f"{default}x" if default else "x")


def test_the_file_knows_both_versions_under_both_spellings() -> None:
    keys = hive_keys()
    assert len({(key.name, key.older_name) for key in keys}) == len(keys)
    assert sum("3.1" in key.versions for key in keys) == 186
    assert sum("4.0" in key.versions for key in keys) == 368
    assert {key.action for key in keys} == {"mapped", "harmless", "ignored", "insecure"}
    assert all(key.note for key in keys)


def test_mapped_keys_are_those_that_settings_declare() -> None:
    declared = settings_by_site_key()
    for key in hive_keys():
        for name in (key.name, key.older_name):
            if key.action == "mapped" and keys_by_spelling()[name] is key and name in declared:
                assert declared[name].name == key.note, name
            if key.action != "mapped":
                assert name not in declared, name
        if key.action == "mapped":
            assert key.name in declared or key.older_name in declared, key.name
    for reference in all_settings():
        for name in facts_of(reference.field).site_keys:
            if is_metastore_key(name):
                assert keys_by_spelling()[name].note == reference.name, name


@pytest.mark.parametrize(("name", "key"), UNMAPPED, ids=[name for name, _ in UNMAPPED])
def test_each_key_is_accounted_for(tmp_path: Path, name: str, key: HiveKey) -> None:
    """A file with the key: it is refused, listed as not honored, or listed as without meaning; never ignored
    silently."""
    value = another_value(key)
    site = site_of(tmp_path, {name: value})
    if key.action == "insecure":
        with pytest.raises(ConfigurationError) as raised:
            loaded(site)
        (problem,) = raised.value.problems
        assert name in problem and str(site) in problem and "security.accept_insecure" in problem
        assert key.note in problem
        accepted = loaded(site, accept=True)
        assert [one.name for one in accepted.accepted_insecure] == [name]
        assert HiveValues(accepted).get(name) != value
        return
    configuration = loaded(site)
    review = configuration.site_review
    assert not review.insecure and not configuration.accepted_insecure
    if key.action == "ignored":
        assert [(one.name, one.note) for one in review.ignored] == [(name, key.note)]
        assert HiveValues(configuration).get(name) != value
    else:
        assert (review.ignored, review.harmless) == ((), (name,))


def test_what_is_in_force_anyway_is_let_pass(tmp_path: Path) -> None:
    properties = {name: key.in_force[0] for name, key in UNMAPPED if key.in_force}
    configuration = loaded(site_of(tmp_path, properties))
    assert configuration.site_review.ignored == ()
    assert set(configuration.site_review.harmless) == properties.keys()


def test_options_of_javas_database_layer_need_not_be_known(tmp_path: Path) -> None:
    review = loaded(
        site_of(tmp_path, {"datanucleus.fixedDatastore": "true", "metastore.fixedDatastore": "true"})
    ).site_review
    assert review.harmless == ("datanucleus.fixedDatastore",)
    assert [one.name for one in review.ignored] == ["metastore.fixedDatastore"]


def test_a_real_site_is_refused_with_every_key_that_protects_it() -> None:
    with pytest.raises(ConfigurationError) as raised:
        loaded(REAL_SITE)
    named = {problem.split(" = ")[0].rpartition(" ")[2] for problem in raised.value.problems}
    assert named == {
        "hive.metastore.pre.event.listeners",
        "hive.security.metastore.authorization.manager",
        "metastore.server.filter.enabled",
        "metastore.filter.hook",
    }


def test_every_key_of_a_real_site_is_accounted_for() -> None:
    """The file's metastore keys are mapped or listed, each once; those of HiveServer2 and Hadoop do not matter here."""
    configuration = loaded(REAL_SITE, accept=True)
    review = configuration.site_review
    listed = [one.name for one in (*review.insecure, *review.ignored)] + list(review.harmless)
    mapped = [name for name in configuration.site if name in settings_by_site_key()]
    others = {"hive.server2.authentication", "hive.execution.engine"}
    assert sorted([*listed, *mapped, *others]) == sorted(read_site_files((REAL_SITE,)))
    assert {one.name for one in review.ignored} == {
        "hive.metastore.execute.setugi",
        "hive.metastore.server.max.threads",
        "hive.metastore.server.min.threads",
        "hive.compactor.worker.threads",
        "hive.metastore.no.such.key",
    }
    settings = configuration.settings
    assert settings.cache.enabled
    assert settings.cache.include == (r"/hive\.sales\..*/", "/hive\\.hr\\.emp[0-9]+/")
    assert settings.cache.exclude == (r"/.*\.staging_.*/",)
    assert settings.cache.budget_bytes == 4 * 1024**3
    assert settings.database.url.endswith("?ssl_mode=REQUIRED")
    assert "keystore-secret" not in str(configuration.site_review)


def test_what_clients_are_told_is_so() -> None:
    """No key that is not honored is answered with the file's value, whatever name a client uses for it."""
    values = HiveValues(loaded(REAL_SITE, accept=True))
    assert values.get("metastore.sasl.enabled") == values.get("hive.metastore.sasl.enabled") == "true"
    assert values.get("metastore.use.SSL") == values.get("hive.metastore.use.SSL") == "true"
    assert values.get("metastore.keystore.path") == "/etc/security/hms.jks"
    assert values.get("metastore.keystore.password") is None
    assert values.get("hive.ssl.protocol.blacklist") == "SSLv2,SSLv3,TLSv1,TLSv1.1"
    assert values.get("hive.metastore.pre.event.listeners") == ""
    assert values.get("metastore.execute.setugi") == "false"
    assert values.get("metastore.server.max.threads") is None
    assert values.get("metastore.rawstore.impl") == "org.apache.hadoop.hive.metastore.cache.CachedStore"
    assert values.get("metastore.cached.rawstore.cached.object.whitelist") == r"hive\.sales\..*,hive\.hr\.emp[0-9]+"
    assert values.get("hive.execution.engine") == "tez"


@pytest.mark.parametrize(
    ("store", "enabled", "listed"),
    [
        ("org.apache.hadoop.hive.metastore.cache.CachedStore", True, False),
        ("org.apache.hadoop.hive.metastore.ObjectStore", True, False),
        ("com.example.OurStore", True, True),
    ],
)
def test_hives_store_classes(tmp_path: Path, store: str, enabled: bool, listed: bool) -> None:
    """Hive's default says nothing about a cache; a custom class is not run."""
    configuration = loaded(site_of(tmp_path, {"metastore.rawstore.impl": store}))
    assert configuration.settings.cache.enabled is enabled
    assert bool(configuration.site_review.ignored) is listed


def test_a_memory_without_limit_is_not_honoured(tmp_path: Path) -> None:
    configuration = loaded(site_of(tmp_path, {"metastore.cached.rawstore.max.cache.memory": "-1"}))
    assert configuration.settings.cache.budget_bytes == 1024**3
    assert len(configuration.site_review.ignored) == 1


def test_a_list_that_is_no_regular_expression_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="regular expression"):
        loaded(site_of(tmp_path, {"metastore.cached.rawstore.cached.object.whitelist": "hive.(x"}))


def test_entities_that_multiply_are_refused(tmp_path: Path) -> None:
    """Nine lines of a site file expand to 400 MB of text without a limit."""
    before, entities = "aaaa", []
    for name in "bcdefghi":
        entities.append(f'<!ENTITY {name} "{before * 10}">')
        before = f"&{name};"
    site = tmp_path / "hive-site.xml"
    value = f"<property><name>x</name><value>{before}</value></property>"
    site.write_text(f"<!DOCTYPE c [{''.join(entities)}]><configuration>{value}</configuration>")
    with pytest.raises(ConfigurationError, match="it contains more than 1,048,576 characters of text"):
        read_site_files((site,))


def test_variables_that_multiply_are_refused(tmp_path: Path) -> None:
    site = tmp_path / "hive-site.xml"
    values = {"long": "a" * 200_000, "x": "${long}" * 6}
    properties = "".join(f"<property><name>{k}</name><value>{v}</value></property>" for k, v in values.items())
    site.write_text(f"<configuration>{properties}</configuration>")
    with pytest.raises(ConfigurationError, match="a value of a site file has more than 1,048,576 characters"):
        read_site_files((site,))
