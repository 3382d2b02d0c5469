"""Partition specs as they may arrive: fields of old tables and of REST clients have no ids yet."""

import msgspec

from bergline.errors import InvalidInputError
from bergline.format.integers import Int
from bergline.format.partition import FIRST_PARTITION_FIELD_ID, PartitionField, PartitionSpec

UNNUMBERED = 0
"""The id of a partition field that has none yet; real ids start at 1000."""


class WirePartitionField(PartitionField, frozen=True, kw_only=True):
    """A partition field whose id may be missing."""

    field_id: Int = UNNUMBERED


class WirePartitionSpec(PartitionSpec, frozen=True):
    """A partition spec whose field ids may be missing: all of them, or none."""

    fields: tuple[WirePartitionField, ...]

    def __post_init__(self) -> None:
        missing = sum(f.field_id == UNNUMBERED for f in self.fields)
        if missing not in (0, len(self.fields)):
            raise InvalidInputError(
                f"expected a field-id for all partition fields or for none, found {missing} of {len(self.fields)} "
                "without one"
            )

    def plain(self) -> PartitionSpec:
        """The spec; fields without ids stay unnumbered."""
        return PartitionSpec(self.spec_id, tuple(PartitionField(**msgspec.structs.asdict(f)) for f in self.fields))

    def numbered(self) -> PartitionSpec:
        """The spec, with ids from 1000 where it has none, as in old v1 tables."""
        fields = (
            msgspec.structs.replace(f, field_id=FIRST_PARTITION_FIELD_ID + n) if f.field_id == UNNUMBERED else f
            for n, f in enumerate(self.plain().fields)
        )
        return PartitionSpec(self.spec_id, tuple(fields))
