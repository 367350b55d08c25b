"""What the partitions of one kind have in common, as parts of their encoding (`wire.partition_parts`).

A `RecordTemplate` contains everything except each partition's own parts; the partitions of a table have only a few
templates. It includes the prefix of the locations, and the prefix and suffix of the encoded parameters: keys, equal
values, catalog, write id.
"""

from __future__ import annotations

from typing import Final

from hms_cache.values import frozen


@frozen
class RecordTemplate:
    """The parts that partitions of one kind have in common."""

    owner: bytes
    before_location: bytes
    location_base: bytes
    """Prefix of their locations."""
    ends_with_name: bool
    """Whether the rest of the location is the partition's name; otherwise it is stored per partition."""
    after_location: bytes
    parameter_names: tuple[str, ...] | None
    prefix: bytes
    """Prefix of the result of `encode_parameters` for each of them."""
    suffix: bytes
    """Suffix of that."""
    after_parameters: int
    """Number of bytes after the parameters in the result of `encode_parameters`: catalog, write id, end."""
    is_whole: bool = False
    """For partitions without a kind: stored as encoded, without the header of the values."""

    def memory_bytes(self) -> int:
        """Memory used, including parts that are shared with other templates."""
        parts = (self.owner, self.before_location, self.location_base, self.after_location, self.prefix, self.suffix)
        return 200 + sum(33 + len(part) for part in parts)


WHOLE: Final = RecordTemplate(b"", b"", b"", False, b"", None, b"", b"", 0, is_whole=True)
