"""The documents that list the settings agree with the declarations."""

from __future__ import annotations

import math
import re
import tomllib
from pathlib import Path

import pytest

from hms_cache.config import Settings, load
from hms_cache.config.reference import markdown, toml
from hms_cache.config.setting import description_of, facts_of
from hms_cache.config.settings import all_settings, section_types
from hms_cache.config.site_file import settings_by_site_key

ROOT = Path(__file__).parents[2]


def test_the_page_and_the_example_are_up_to_date() -> None:
    assert (ROOT / "docs" / "configuration.md").read_text() == markdown(), "run make generate"
    assert (ROOT / "conf" / "hms-cache.toml").read_text() == toml(), "run make generate"


def test_the_example_says_the_defaults(tmp_path: Path) -> None:
    uncommented = re.sub(r"^#(\w+ = )", r"\1", toml(), flags=re.MULTILINE)
    assert len([line for line in uncommented.splitlines() if " = " in line and line[0] != "#"]) == len(
        [*all_settings()]
    )
    tomllib.loads(uncommented)
    path = tmp_path / "all.toml"
    path.write_text(re.sub(r"^password = .*\n|^token = .*\n", "", uncommented, flags=re.MULTILINE))
    assert load(config_file=path, environment={}).settings == Settings()


def test_every_setting_says_what_it_is_and_why_its_number() -> None:
    for reference in all_settings():
        facts = facts_of(reference.field)
        assert reference.field.description and reference.field.description.endswith((".", "?")), reference.name
        if isinstance(reference.field.default, int | float) and not isinstance(reference.field.default, bool):
            assert facts.reason.endswith("."), f"{reference.name} has a number without its reason"


@pytest.mark.parametrize(("spoken_of", "value"), [(r"\binf\b", math.inf), (r"\b0:", 0), ("-1:", -1)])
def test_values_that_a_text_speaks_of_are_accepted(spoken_of: str, value: float) -> None:
    found = [one for one in all_settings() if re.search(spoken_of, description_of(one.field))]
    assert found
    for reference in found:
        section = section_types()[reference.section].model_validate({reference.key: value})
        assert getattr(section, reference.key) == value, reference.name


def test_no_site_key_stands_for_two_settings() -> None:
    keys = [key for reference in all_settings() for key in facts_of(reference.field).site_keys]
    assert len(keys) == len(set(keys)) == len(settings_by_site_key())


@pytest.mark.parametrize("path", sorted((ROOT / "conf").iterdir()), ids=lambda path: path.name)
def test_every_example_loads(path: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hush\n")
    text = path.read_text().replace("/run/secrets/database-password", str(secret))
    copy = tmp_path / path.name
    copy.write_text(text)
    if path.suffix == ".toml":
        configuration = load(config_file=copy, environment={})
    else:
        configuration = load(site_files=[copy], environment={})
        assert configuration.settings.database.url == "mysql+pymysql://127.0.0.1:3306/metastore"
    assert configuration.origins or path.name == "hms-cache.toml"
