"""Properties of the metastore, its databases and tables."""

from __future__ import annotations

from hms_cache.server.calls import Call, HandlerTable
from hms_cache.thrift_gen.hive_metastore import ThriftHiveMetastore as methods
from hms_cache.thrift_gen.hive_metastore.ttypes import PropertyGetResponse

handlers = HandlerTable()


@handlers.read("get_properties", about=lambda a: f"{a.req.nameSpace} {a.req.mapPrefix}")
def get_properties(call: Call, arguments: methods.get_properties_args) -> PropertyGetResponse:
    request = arguments.req
    return PropertyGetResponse(
        call.stores.auxiliary.properties.get(
            request.nameSpace, request.mapPrefix, request.mapPredicate, request.mapSelection
        )
    )


@handlers.write("set_properties", about=lambda a: a.req.nameSpace)
def set_properties(call: Call, arguments: methods.set_properties_args) -> bool:
    call.stores.auxiliary.properties.set(arguments.req.nameSpace, arguments.req.propertyMap or {})
    return True
