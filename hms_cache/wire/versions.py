"""Where the releases disagree about the same bytes, resolved per call.

The IDL has the meaning of 3.1 and later. Here is the rest:

AddDynamicPartitions: 2.3 has the ids 2 dbname, 3 tablename, 4 partitionnames, 5 operationType; later 2 is writeid
    and the rest comes one later. A request without a write id is read a second time, by the 2.3 table.
InsertEventRequestData: 2.3 has 1 filesAdded, 2 filesAddedChecksum; later 1 replace, 2 filesAdded and 3
    filesAddedChecksum. A request without `replace` is read a second time; a list in field 1 means 2.3.
GetOpenTxnsResponse, field 2: a set in 2.3, a list later. Written as both; a reader skips the type it does not know.
get_partition_names, exceptions: 1 Meta in 2.3; 1 NoSuchObject, 2 Meta later. Written under 1, which both read, unless
    the request's database has a catalog in front: its client is of 3.0 or later, and would see NoSuchObject.
create_ischema, exceptions: NoSuchObject is -1 in 3.1, 2 later. Written under both.
Table, field 16: a string in 2.3 (which its own client never writes), a struct later. The decoder skips the string.
Database names: plain in 2.3, `@catalog#database` from Java clients since 3.0. See parse_database_name.

The results of drop_database_req and drop_table_req (nothing until 4.2, AsyncOperationResp later) and the exceptions
of get_table_objects_by_name (none in 3.1 and 4.0) need no bytes of their own: handlers always answer with a value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from thrift.Thrift import TType

from hms_cache.thrift_gen.hive_metastore import ThriftHiveMetastore, ttypes

DEFAULT_CATALOG: Final = "hive"
"""The catalog of calls that name none."""

_CATALOG_MARK: Final = "@"
_CATALOG_SEPARATOR: Final = "#"
_EMPTY_DATABASE_MARK: Final = "!"

_TEXT: Final = "UTF8"
_TEXT_LIST: Final = (TType.STRING, _TEXT, False)


class Rereading(NamedTuple):
    """A second decoding of a request, with the fields of another release."""

    table: list[Any]
    """Class and fields of the arguments in that release."""
    is_wanted: Callable[[Any], bool]
    """Whether the arguments, as decoded first, may be those of that release."""
    chosen: Callable[[Any, Any], Any]
    """Selects the arguments from both decodings."""


def parse_database_name(text: str | None, default_catalog: str = DEFAULT_CATALOG) -> tuple[str, str | None]:
    """Splits the database argument of a call into (catalog, database).

    Clients since Hive 3.0 write `@catalog#database`; `@catalog#` means no database (None) and `@catalog#!` an empty
    name. A plain name, or None, belongs to the default catalog. Source: MetaStoreUtils.parseDbName, Hive 3.1.

    Raises MetaException if the mark is present but the separator is missing.
    """
    if not text or text[0] != _CATALOG_MARK:
        return default_catalog, text
    catalog, separator, database = text[1:].partition(_CATALOG_SEPARATOR)
    if not separator:
        raise ttypes.MetaException(f"{text} is prepended with the catalog marker but has no catalog name in it")
    if database == _EMPTY_DATABASE_MARK:
        return catalog, ""
    return catalog, database or None


_OLD_DYNAMIC_PARTITIONS: Final = (
    None,
    (1, TType.I64, "txnid", None, None),
    (2, TType.STRING, "dbname", _TEXT, None),
    (3, TType.STRING, "tablename", _TEXT, None),
    (4, TType.LIST, "partitionnames", _TEXT_LIST, None),
    (5, TType.I32, "operationType", None, None),
)
_OLD_DYNAMIC_PARTITIONS_ARGUMENTS: Final = [
    ThriftHiveMetastore.add_dynamic_partitions_args,
    (None, (1, TType.STRUCT, "rqst", [ttypes.AddDynamicPartitions, _OLD_DYNAMIC_PARTITIONS], None)),
]


def _has_no_write_id(arguments: Any) -> bool:
    """A request of a 2.3 client has other field numbers, so that `writeid` stays None."""
    return arguments.rqst is not None and arguments.rqst.writeid is None


_OLD_INSERT_EVENT: Final = (
    None,
    (1, TType.LIST, "filesAdded", _TEXT_LIST, None),
    (2, TType.LIST, "filesAddedChecksum", _TEXT_LIST, None),
)
_OLD_FIRE_EVENT_DATA: Final = (
    None,
    (1, TType.STRUCT, "insertData", [ttypes.InsertEventRequestData, _OLD_INSERT_EVENT], None),
)
_OLD_FIRE_EVENT: Final = (
    *ttypes.FireEventRequest.thrift_spec[:2],
    (2, TType.STRUCT, "data", [ttypes.FireEventRequestData, _OLD_FIRE_EVENT_DATA], None),
    *ttypes.FireEventRequest.thrift_spec[3:6],
)
_OLD_FIRE_EVENT_ARGUMENTS: Final = [
    ThriftHiveMetastore.fire_listener_event_args,
    (None, (1, TType.STRUCT, "rqst", [ttypes.FireEventRequest, _OLD_FIRE_EVENT], None)),
]


def _lacks_replace(arguments: Any) -> bool:
    request = arguments.rqst
    insert = request.data.insertData if request is not None and request.data is not None else None
    return insert is not None and insert.replace is None


def _with_a_list_first(arguments: Any, old: Any) -> Any:
    """The insert event of a 2.3 client, whose first field is a list, decoded with its own field numbers."""
    reread = old.rqst.data.insertData
    return arguments if reread is None or reread.filesAdded is None else old


REREADINGS: Final[dict[str, Rereading]] = {
    "add_dynamic_partitions": Rereading(
        _OLD_DYNAMIC_PARTITIONS_ARGUMENTS, _has_no_write_id, lambda arguments, old: old
    ),
    "fire_listener_event": Rereading(_OLD_FIRE_EVENT_ARGUMENTS, _lacks_replace, _with_a_list_first),
}


def _get_open_txns_result() -> list[Any]:
    spec = ttypes.GetOpenTxnsResponse.thrift_spec
    as_set = (2, TType.SET, "open_txns", (TType.I64, None, False), None)
    both = (*spec[:2], as_set, *spec[2:])
    result = ThriftHiveMetastore.get_open_txns_result
    success = (0, TType.STRUCT, "success", [ttypes.GetOpenTxnsResponse, both], None)
    return [result, (success, *result.thrift_spec[1:])]


def _create_ischema_result() -> list[Any]:
    result = ThriftHiveMetastore.create_ischema_result
    no_such_object = result.thrift_spec[2]
    return [result, ((-1, *no_such_object[1:]), *result.thrift_spec)]


#: Field tables of results with more fields than the class's own, by method.
RESULT_TABLES: Final[dict[str, list[Any]]] = {
    "get_open_txns": _get_open_txns_result(),
    "create_ischema": _create_ischema_result(),
}

#: Result attributes of exceptions that must not be written under their own, by method.
EXCEPTION_ATTRIBUTES: Final[dict[str, dict[type[Exception], str]]] = {
    "get_partition_names": {ttypes.MetaException: "o1"},
}

_OF_CLIENTS_WITH_CATALOGS: Final[dict[str, dict[str, str]]] = {"get_partition_names": {"o1": "o2"}}


def exception_attribute(method: str, arguments: Any, error: Exception, attribute: str) -> str:
    """The result attribute of an exception for this request. `attribute`: the one for other requests of the method."""
    moved = _OF_CLIENTS_WITH_CATALOGS.get(method)
    if moved is None or not isinstance(error, ttypes.MetaException):
        return attribute
    return moved.get(attribute, attribute) if (arguments.db_name or "").startswith("@") else attribute
