"""Changes for which Hive logs no event, but of which another server's cache must be notified."""

from __future__ import annotations

from hms_cache.thrift_gen.hive_metastore.ttypes import Function, FunctionType, PrincipalType
from tests.python_client.conftest import DATABASE, StartMetastore


def function(class_name: str) -> Function:
    return Function("f", "d", class_name, "o", PrincipalType.USER, 1, FunctionType.JAVA, [], "hive")


def test_an_altered_function_is_seen_at_once_and_everywhere(start_metastore: StartMetastore) -> None:
    first, second = start_metastore(), start_metastore()
    first.client.call("create_database", DATABASE)
    first.client.call("create_function", function("org.example.Before"))
    for server in (first, second):
        assert server.client.call("get_function", "d", "f").className == "org.example.Before"
    first.client.call("alter_function", "d", "f", function("org.example.After"))
    for server in (first, second):
        assert server.client.call("get_function", "d", "f").className == "org.example.After"
