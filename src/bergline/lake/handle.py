"""What all parts of a lake share: its catalog, and where time comes from."""

import msgspec

from bergline.catalog.catalog import Catalog
from bergline.table.commits.retry import Timing


class LakeHandle(msgspec.Struct, frozen=True):
    """An open catalog, and the clock by which tables and views are created and commits are retried."""

    catalog: Catalog
    timing: Timing
