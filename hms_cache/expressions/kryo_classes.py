"""The classes that each Hive's Kryo supports, and their serialization, from `kryo_classes.tsv`; read once."""

from __future__ import annotations

import functools
from dataclasses import field
from importlib.resources import files

from hms_cache.values import frozen


@frozen
class KryoClass:
    """Serialization of a class: its serializer's name and, for `FieldSerializer`, its fields in order."""

    name: str
    serializer: str
    fields: tuple[tuple[str, str], ...]


@frozen
class Dialect:
    """The Kryo of a Hive version."""

    hive: str
    kryo_5: bool
    writes_root_class: bool
    classes: dict[str, KryoClass] = field(repr=False)
    registered: dict[int, str] = field(repr=False)

    def __str__(self) -> str:
        return f"Hive {self.hive}{' without a class' if self.kryo_5 and not self.writes_root_class else ''}"


@functools.lru_cache(maxsize=1)
def dialects() -> tuple[Dialect, ...]:
    """The dialects of Hive 4, 3 and 2, and that of Hive 4 for an object whose class both sides know."""
    text = files("hms_cache.expressions").joinpath("kryo_classes.tsv").read_text(encoding="ascii")
    classes: dict[str, dict[str, KryoClass]] = {"4": {}, "3": {}, "2": {}}
    registered: dict[str, dict[int, str]] = {"4": {}, "3": {}, "2": {}}
    for line in text.splitlines():
        versions, name, serializer, class_id, *fields = line.split("\t")
        parsed = tuple((spelt.partition(":")[0], spelt.partition(":")[2]) for spelt in fields)
        for version in versions.split(","):
            classes[version][name] = KryoClass(name, serializer, parsed)
            if class_id != "-1":
                registered[version][int(class_id)] = name
    with_root_class = {"4": True, "3": False, "2": False}
    return tuple(
        Dialect(version, version == "4", root_class, classes[version], registered[version])
        for version, root_class in [*with_root_class.items(), ("4", False)]
    )
