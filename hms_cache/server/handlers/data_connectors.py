"""Data connectors, in the positional spelling of 4.0.0 and the request spelling since."""

from __future__ import annotations

from hms_cache.server.calls import Call, HandlerTable
from hms_cache.thrift_gen.hive_metastore import ThriftHiveMetastore as methods
from hms_cache.thrift_gen.hive_metastore.ttypes import DataConnector

handlers = HandlerTable()


@handlers.write("create_dataconnector", about=lambda a: a.connector.name)
def create_dataconnector(call: Call, arguments: methods.create_dataconnector_args) -> None:
    _create(call, arguments.connector)


@handlers.write("create_dataconnector_req", about=lambda a: a.connectorReq.connector.name)
def create_dataconnector_req(call: Call, arguments: methods.create_dataconnector_req_args) -> None:
    _create(call, arguments.connectorReq.connector)


def _create(call: Call, connector: DataConnector) -> None:
    """A connector without an owner belongs to its creator."""
    if connector.ownerName is None:
        connector.ownerName = call.session.user
    call.stores.auxiliary.data_connectors.create(connector)


@handlers.read("get_dataconnector_req", about=lambda a: a.request.connectorName)
def get_dataconnector_req(call: Call, arguments: methods.get_dataconnector_req_args) -> DataConnector:
    return call.stores.auxiliary.data_connectors.get(arguments.request.connectorName)


@handlers.read("get_dataconnectors")
def get_dataconnectors(call: Call, arguments: methods.get_dataconnectors_args) -> list[str]:
    return call.stores.auxiliary.data_connectors.get_names()


@handlers.write("alter_dataconnector", about=lambda a: a.name)
def alter_dataconnector(call: Call, arguments: methods.alter_dataconnector_args) -> None:
    call.stores.auxiliary.data_connectors.alter(arguments.name, arguments.connector)


@handlers.write("alter_dataconnector_req", about=lambda a: a.alterReq.connectorName)
def alter_dataconnector_req(call: Call, arguments: methods.alter_dataconnector_req_args) -> None:
    call.stores.auxiliary.data_connectors.alter(arguments.alterReq.connectorName, arguments.alterReq.newConnector)


@handlers.write("drop_dataconnector", about=lambda a: a.name)
def drop_dataconnector(call: Call, arguments: methods.drop_dataconnector_args) -> None:
    call.stores.auxiliary.data_connectors.drop(arguments.name, if_exists=bool(arguments.ifNotExists))


@handlers.write("drop_dataconnector_req", about=lambda a: a.dropDcReq.connectorName)
def drop_dataconnector_req(call: Call, arguments: methods.drop_dataconnector_req_args) -> None:
    request = arguments.dropDcReq
    call.stores.auxiliary.data_connectors.drop(request.connectorName, if_exists=bool(request.ifNotExists))
