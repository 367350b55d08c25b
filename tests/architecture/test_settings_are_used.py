"""A setting that nothing reads would be a promise to operators that nobody keeps."""

from __future__ import annotations

import re
from pathlib import Path

from hms_cache.config.setting import facts_of
from hms_cache.config.settings import all_settings

PACKAGE = Path(__file__).parents[2] / "hms_cache"

#: Read by the loader itself.
BY_THE_LOADER = {
    f"{secret}_{source}"
    for secret in ("database.password", "admin.token", "admin.read_token", "server.tls_key_password", "lease.secret")
    for source in ("file", "command")
}
#: Told to clients that ask for the configuration under Hive's names, and acted upon by those.
BY_CLIENTS = {"catalog.batch_retrieve_max", "catalog.batch_retrieve_table_partition_max"}


def test_every_setting_is_read_by_a_part_of_the_program() -> None:
    source = "\n".join(
        path.read_text(encoding="utf-8")
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE).parts[0] not in ("config", "thrift_gen")
    ) + (PACKAGE / "config" / "sections" / "database.py").read_text(encoding="utf-8")
    whole = set(re.findall(r"settings\.(\w+)\.model_dump\(\)", source))  # a section whose fields are a part's own
    unread = [
        reference.name
        for reference in all_settings()
        if reference.name not in BY_THE_LOADER | BY_CLIENTS
        and reference.name.partition(".")[0] not in whole
        and not re.search(rf"\.{reference.key}\b", source)
    ]
    assert not unread


def test_what_only_clients_read_has_a_name_they_know() -> None:
    for reference in all_settings():
        if reference.name in BY_CLIENTS:
            assert facts_of(reference.field).site_keys
