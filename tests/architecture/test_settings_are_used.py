"""A setting that nothing reads would be a promise to operators that nobody keeps."""

from __future__ import annotations

import re
from pathlib import Path

from hms_cache.config.setting import facts_of
from hms_cache.config.settings import Settings, all_settings

PACKAGE = Path(__file__).parents[2] / "hms_cache"

#: Read by the loader itself.
BY_THE_LOADER = {
    f"{secret}_{source}"
    for secret in (
        "database.password",
        "admin.token",
        "admin.read_token",
        "server.tls_key_password",
        "lease.secret",
        "authentication.ldap_bind_password",
    )
    for source in ("file", "command")
}
#: Parts of the database's URL, which its section puts together.
BY_ITS_SECTION = {"database.username", "database.password"}
#: Told to clients that ask for the configuration under Hive's names, and acted upon by those.
BY_CLIENTS = {"catalog.batch_retrieve_max", "catalog.batch_retrieve_table_partition_max"}


def test_every_setting_is_read_by_a_part_of_the_program() -> None:
    """Read from its section: an attribute of the same name elsewhere is something else."""
    source = "\n".join(
        path.read_text(encoding="utf-8")
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE).parts[0] not in ("config", "thrift_gen")
    )
    classes = "|".join(type(getattr(Settings(), section)).__name__ for section in Settings.model_fields)
    # Names that a section has somewhere: of a parameter, of a field, or of a local variable in app/.
    sections = {*re.findall(rf"\b_?(\w+): (?:{classes})\b", source), "settings", "given", r"input_limits\(\)"}
    whole = set(re.findall(r"settings\.(\w+)\.model_dump\(\)", source))  # a section whose fields are a part's own
    unread = [
        reference.name
        for reference in all_settings()
        if reference.name not in BY_THE_LOADER | BY_CLIENTS | BY_ITS_SECTION
        and reference.name.partition(".")[0] not in whole
        and not re.search(
            rf"\b_?(?:{'|'.join(sections | {reference.name.partition('.')[0]})})\.{reference.key}\b", source
        )
    ]
    assert not unread


def test_what_only_clients_read_has_a_name_they_know() -> None:
    for reference in all_settings():
        if reference.name in BY_CLIENTS:
            assert facts_of(reference.field).site_keys
