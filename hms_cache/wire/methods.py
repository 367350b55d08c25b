"""The methods that can be called: one MethodSpec for each method of the metastore service and of fb303, its base."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType, ModuleType
from typing import Any, Final

from hms_cache.thrift_gen.fb303 import FacebookService
from hms_cache.thrift_gen.hive_metastore import ThriftHiveMetastore
from hms_cache.wire import versions

_ARGUMENTS_SUFFIX: Final = "_args"


@dataclass(frozen=True, slots=True, eq=False)
class MethodSpec:
    """One method of the service.

    name: as on the wire; `wire_name` is the same as bytes.
    args_class: the generated struct of the arguments.
    result_class: the generated struct of the result (field `success`, and one for each declared exception), or None
    for a
        one-way method.
    args_table, result_table: what the C extension takes: [class, field table].
    has_value: whether the method returns something, that is, whether the result has a field `success`.
    exceptions: declared exception class to the attribute of the result that carries it.
    reread: see `versions.REREADINGS`.
    """

    name: str
    wire_name: bytes
    args_class: Any
    result_class: Any | None
    args_table: list[Any]
    result_table: list[Any]
    has_value: bool
    exceptions: Mapping[type[Exception], str]
    reread: versions.Rereading | None

    @property
    def oneway(self) -> bool:
        """Whether no reply is ever sent."""
        return self.result_class is None

    def result(self, value: Any = None) -> Any:
        """The result struct for a return value. Not for one-way methods."""
        result = self.result_class()  # type: ignore[misc]
        if self.has_value:
            result.success = value
        return result


def _spec(module: ModuleType, name: str) -> MethodSpec:
    args_class = getattr(module, name + _ARGUMENTS_SUFFIX)
    result_class = getattr(module, f"{name}_result", None)
    fields = [field for field in (result_class.thrift_spec if result_class else ()) if field is not None]
    exceptions = {field[3][0]: field[2] for field in fields if field[0] > 0}
    exceptions.update(versions.EXCEPTION_ATTRIBUTES.get(name, {}))
    own_table = [result_class, result_class.thrift_spec] if result_class else []
    return MethodSpec(
        name=name,
        wire_name=name.encode(),
        args_class=args_class,
        result_class=result_class,
        args_table=[args_class, args_class.thrift_spec],
        result_table=versions.RESULT_TABLES.get(name, own_table),
        has_value=any(field[0] == 0 for field in fields),
        exceptions=MappingProxyType(exceptions),
        reread=versions.REREADINGS.get(name),
    )


def _all_specs() -> dict[str, MethodSpec]:
    specs = {}
    for module in (FacebookService, ThriftHiveMetastore):
        for attribute in vars(module):
            if attribute.endswith(_ARGUMENTS_SUFFIX):
                name = attribute.removesuffix(_ARGUMENTS_SUFFIX)
                specs[name] = _spec(module, name)
    return specs


#: All methods by name: 298 of the metastore and 13 of fb303.
METHODS: Final[Mapping[str, MethodSpec]] = MappingProxyType(_all_specs())

#: The methods by the bytes of their names.
METHODS_BY_WIRE_NAME: Final[dict[bytes, MethodSpec]] = {spec.wire_name: spec for spec in METHODS.values()}
