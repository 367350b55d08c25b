"""One Presto server with a metastore."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

from tests.clients.presto import distribution
from tests.clients.trino.coordinator import Coordinator

_CACHES_OFF = {"hive.metastore-cache-ttl": "0s", "hive.metastore-refresh-interval": "0s"}

CATALOGS: dict[str, dict[str, str]] = {
    "hive": {
        "connector.name": "hive-hadoop2",
        "hive.allow-drop-table": "true",
        "hive.allow-rename-table": "true",
        "hive.allow-add-column": "true",
        "hive.allow-drop-column": "true",
        "hive.allow-rename-column": "true",
        "hive.non-managed-table-writes-enabled": "true",
        **_CACHES_OFF,
    },
    "secured": {"connector.name": "hive-hadoop2", "hive.security": "sql-standard", **_CACHES_OFF},
    "iceberg": {"connector.name": "iceberg"},
}


class PrestoCoordinator(Coordinator):
    """Presto in a separate process, coordinator and worker in one."""

    product = "Presto"
    main_class = "com.facebook.presto.server.PrestoServer"
    jvm_options = (
        "-Xmx1500m",
        "-XX:+UseSerialGC",
        "-XX:+ExitOnOutOfMemoryError",
        "-XX:TieredStopAtLevel=1",
        "-Djdk.attach.allowAttachSelf=true",
    )
    catalogs = CATALOGS
    common = MappingProxyType({})
    settings = MappingProxyType({"discovery-server.enabled": "true", "query.max-total-memory-per-node": "600MB"})
    log_levels = MappingProxyType({"com.facebook": "WARN"})

    def _distribution(self) -> tuple[Path, Path]:
        return distribution.java(), distribution.fetch()
