"""What all parts of a lake share: its catalog and its clock."""

import msgspec

from bergline.catalog.catalog import Catalog
from bergline.table.commits.retry import Timing


class LakeHandle(msgspec.Struct, frozen=True):
    """An open catalog, and the clock for creating tables and views and for retrying commits."""

    catalog: Catalog
    timing: Timing
