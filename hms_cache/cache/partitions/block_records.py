"""What the partitions of one kind have in common, out of the parts of their encoding (`wire.partition_parts`).

All parts but those of each partition's own are a `RecordTemplate`, which the partitions of a table have in common but
for a few kinds. So is the beginning of the locations, and what the encoded parameters begin and end with: keys, equal
values, catalog, write id.
"""

from __future__ import annotations

from typing import Final

from hms_cache.values import frozen


@frozen
class RecordTemplate:
    """What partitions of one kind have in common."""

    owner: bytes
    before_location: bytes
    location_base: bytes
    """What their locations begin with."""
    ends_with_name: bool
    """The rest of the location is the partition's name; else it is kept with the partition."""
    after_location: bytes
    parameter_names: tuple[str, ...] | None
    prefix: bytes
    """What `encode_parameters` of each begins with."""
    suffix: bytes
    """What it ends with."""
    after_parameters: int
    """Bytes of `encode_parameters` that are not parameters: catalog, write id, end."""
    is_whole: bool = False
    """Partitions of no kind: kept as encoded, without the header of the values."""

    def memory_bytes(self) -> int:
        """Bytes held, parts that are shared with other templates included."""
        parts = (self.owner, self.before_location, self.location_base, self.after_location, self.prefix, self.suffix)
        return 200 + sum(33 + len(part) for part in parts)


WHOLE: Final = RecordTemplate(b"", b"", b"", False, b"", None, b"", b"", 0, is_whole=True)
