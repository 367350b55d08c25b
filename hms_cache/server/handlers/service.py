"""The conversation itself: fb303, user and groups, configuration, and the call to flush the cache, which does
nothing."""

from __future__ import annotations

import re
import time

from hms_cache.call_context import FILL_CACHE
from hms_cache.server.calls import Call, HandlerTable
from hms_cache.store.partitions.additions import check_values_allowed
from hms_cache.thrift_gen.fb303 import FacebookService
from hms_cache.thrift_gen.hive_metastore import ThriftHiveMetastore as methods
from hms_cache.thrift_gen.hive_metastore.ttypes import ConfigValSecurityException, MetaException

handlers = HandlerTable()

_started_s = int(time.time())

READABLE_PREFIXES = ("hive", "hdfs", "mapred", "metastore")
"""Keys that a client may request (Hive's HMSHandler; 4.x added `metastore`): others could contain secrets."""

HIVE_VERSION = "4.0.1"
"""The release of Hive whose answers this server gives."""

SESSION_VARIABLES = {
    "metastore.partition.name.whitelist.pattern": "",
    "metastore.client.capability.check": "true",
    "metastore.disallow.incompatible.col.type.changes": "true",
    "metastore.try.direct.sql": "true",
    "metastore.try.direct.sql.ddl": "true",
    "metastore.client.socket.timeout": "600s",
    "metastore.partition.order.expr": '"PART_NAME" asc',
    "metastore.expression.proxy": "org.apache.hadoop.hive.ql.optimizer.ppr.PartitionExpressionForMetastore",
    FILL_CACHE: "true",
}
"""Variables that `getMetaConf` answers, with Hive's defaults (`MetastoreConf.metaVars` of 4.0.1), and one of our own.
MSCK REPAIR sets the last of Hive's before it sends filters as text."""

TIME_OUT = "metastore.client.socket.timeout"
_is_time = re.compile(
    r"-?[0-9]{1,18}|[0-9]{1,18}(?:s|sec[a-z]*|ms|msec[a-z]*|m|min[a-z]*|us|usec[a-z]*|ns|nsec[a-z]*|h|hour[a-z]*|d|day[a-z]*)",
    re.ASCII | re.IGNORECASE,
).fullmatch
"""Source: `MetastoreConf.convertTimeStr`."""

ORDER = "metastore.partition.order.expr"
"""An SQL expression by which Hive 4 sorts partitions if it returns some of them. Here they are sorted by name."""

SERVER_WIDE = {
    "metastore.partition.name.whitelist.pattern": "catalog.partition_name_whitelist_pattern",
    "metastore.client.capability.check": "catalog.client_capability_check",
    "metastore.disallow.incompatible.col.type.changes": "catalog.disallow_incompatible_column_type_changes",
}
"""Those of them that a connection cannot set: they change what is stored, or what is answered from memory."""


def canonical_key(key: str) -> str:
    """`hive.metastore.x` and `metastore.x` are one key; the shorter spelling is ours."""
    return key.removeprefix("hive.") if key.startswith("hive.metastore.") else key


@handlers.local("getName")
def get_name(call: Call, arguments: FacebookService.getName_args) -> str:
    """The name of Hive's server, since 2.3."""
    return "new db based metaserver"


@handlers.local("getVersion")
def get_version(call: Call, arguments: FacebookService.getVersion_args) -> str:
    """The version of Hive whose answers this server gives. Hive 3.1 returns "3.0" in every release; since 4, clients
    ask for it."""
    return HIVE_VERSION


@handlers.local("getStatus")
def get_status(call: Call, arguments: FacebookService.getStatus_args) -> int:
    return 2  # fb303 ALIVE


@handlers.local("getStatusDetails", "getCpuProfile")
def get_status_details(
    call: Call, arguments: FacebookService.getStatusDetails_args | FacebookService.getCpuProfile_args
) -> str:
    """Hive's server returns this text for both: it never had a profiler behind the second one."""
    return ""


@handlers.local("getCounters")
def get_counters(call: Call, arguments: FacebookService.getCounters_args) -> dict[str, int]:
    return dict(call.stores.site.counters())


@handlers.local("getCounter")
def get_counter(call: Call, arguments: FacebookService.getCounter_args) -> int:
    return int(call.stores.site.counters().get(arguments.key, 0))


@handlers.local("setOption")
def set_option(call: Call, arguments: FacebookService.setOption_args) -> None:
    call.session.set_variable(f"fb303.{arguments.key}", arguments.value or "")


@handlers.local("getOption")
def get_option(call: Call, arguments: FacebookService.getOption_args) -> str:
    return call.session.variables.get(f"fb303.{arguments.key}", "")


@handlers.local("getOptions")
def get_options(call: Call, arguments: FacebookService.getOptions_args) -> dict[str, str]:
    prefix = "fb303."
    return {k.removeprefix(prefix): v for k, v in call.session.variables.items() if k.startswith(prefix)}


@handlers.local("aliveSince")
def alive_since(call: Call, arguments: FacebookService.aliveSince_args) -> int:
    return _started_s


@handlers.local("shutdown")
def shutdown(call: Call, arguments: FacebookService.shutdown_args) -> None:
    """One-way: the client has finished. The server is never stopped (Spark's client sends this when it reconnects)."""
    call.session.close_after_reply()


@handlers.local("set_ugi")
def set_ugi(call: Call, arguments: methods.set_ugi_args) -> list[str]:
    """Stores user and groups for this connection. Returns the groups, and on an authenticated connection the user as
    well.

    Hive's handler adds the user, and its processor for connections without SASL (`TUGIBasedProcessor`) removes it.
    """
    if not arguments.user_name:
        raise MetaException("User name cannot be null or empty")
    groups = list(arguments.group_names or ())
    call.session.set_user(arguments.user_name, tuple(groups))
    return groups if call.session.principal is None else [*groups, arguments.user_name]


@handlers.local("flushCache", "reinitialize")
def flush_cache(call: Call, arguments: methods.flushCache_args | FacebookService.reinitialize_args) -> None:
    """The first call begins every statement of Hive, so it flushes nothing: answers are current without it. Nor is
    anything read again because a client sends the second call, which has no answer."""


@handlers.local("get_config_value")
def get_config_value(call: Call, arguments: methods.get_config_value_args) -> str:
    name = arguments.name
    if name is None:
        return str(arguments.defaultValue)
    if not name.startswith(READABLE_PREFIXES):
        raise ConfigValSecurityException(f"For security reasons, the config key {name} cannot be accessed")
    value = call.stores.site.config_value(name)
    return str(arguments.defaultValue if value is None else value)


def _session_variable(text: str | None) -> str:
    """The variable's canonical key. Raises MetaException if it does not exist, or if the name is missing."""
    key = canonical_key(text or "")
    if key not in SESSION_VARIABLES:
        raise MetaException(f"Invalid configuration key {'null' if text is None else text}")
    return key


@handlers.local("getMetaConf")
def get_meta_conf(call: Call, arguments: methods.getMetaConf_args) -> str:
    key = _session_variable(arguments.key)
    return str(call.session.variables.get(key) or call.stores.site.config_value(key) or SESSION_VARIABLES[key])


@handlers.local("setMetaConf")
def set_meta_conf(call: Call, arguments: methods.setMetaConf_args) -> None:
    key = _session_variable(arguments.key)
    if key in SERVER_WIDE:
        raise MetaException(f"{arguments.key} can be set for the whole server only, by {SERVER_WIDE[key]}")
    value = arguments.value or ""
    if key == TIME_OUT and not _is_time(value):
        raise _invalid_value(arguments, "it is no time")
    if key == ORDER and value != SESSION_VARIABLES[ORDER]:
        raise _invalid_value(arguments, "partitions are ordered by their names only")
    call.session.set_variable(key, value)


def _invalid_value(arguments: methods.setMetaConf_args, reason: str) -> MetaException:
    return MetaException(f"Invalid configuration value {arguments.value} for key {arguments.key} by {reason}")


@handlers.read("partition_name_has_valid_characters")
def partition_name_has_valid_characters(
    call: Call, arguments: methods.partition_name_has_valid_characters_args
) -> bool:
    """Whether the values match the whitelist pattern; with `throw_exception` a MetaException says which does not."""
    key = "metastore.partition.name.whitelist.pattern"
    pattern = call.stores.site.config_value(key) or ""
    try:
        check_values_allowed(arguments.part_vals or (), pattern)
    except MetaException:
        if arguments.throw_exception:
            raise
        return False
    return True
