"""Sort orders; bergline keeps them, and writes unsorted files until it can sort."""

from typing import Literal

import msgspec

from bergline.format.integers import Int
from bergline.format.transforms import Transform


class SortField(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """One term of a sort order."""

    source_id: Int
    transform: Transform
    direction: Literal["asc", "desc"]
    null_order: Literal["nulls-first", "nulls-last"]


class SortOrder(msgspec.Struct, frozen=True, rename="kebab"):
    """Sort fields in order; order 0 is unsorted."""

    order_id: Int
    fields: tuple[SortField, ...]


UNSORTED = SortOrder(order_id=0, fields=())
