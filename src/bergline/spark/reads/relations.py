"""Relations that are kept: a table at one snapshot is one relation of a session, made when it is first read.

Files never change, so the frame of a scan stays right; a later state of the table is another scan, unless the frame
follows the table.
"""

import threading
from collections import OrderedDict
from collections.abc import Hashable

from pyspark.sql import DataFrame

from bergline.expressions.predicate import ALWAYS_TRUE
from bergline.format.schema.name_mapping import NAME_MAPPING_PROPERTY
from bergline.spark.runtime.backend import SparkBackend
from bergline.table.scans.scan import TableScan

MOST_FILES_UNFILTERED = 32
"""A table of so many files is read whole by Spark's own reader: finding the files that a query needs takes longer."""
_MOST_KEPT = 256
_FILES = "total-data-files"


class KeptRelations:
    """Frames by what they read; the least recently used are dropped."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._frames: OrderedDict[Hashable, tuple[DataFrame | None, TableScan]] = OrderedDict()

    def find(self, key: Hashable) -> tuple[bool, DataFrame | None]:
        """Whether a scan was looked at, and its frame; None if it cannot be kept."""
        with self._lock:
            if key not in self._frames:
                return False, None
            self._frames.move_to_end(key)
            return True, self._frames[key][0]

    def keep(self, key: Hashable, frame: DataFrame | None, scan: TableScan) -> None:
        """Keep a frame; with the scan, since the key has the identity of its storage."""
        with self._lock:
            self._frames[key] = frame, scan
            while len(self._frames) > _MOST_KEPT:
                self._frames.popitem(last=False)

    def clear(self) -> None:
        """Forget all frames."""
        with self._lock:
            self._frames.clear()


KEPT = KeptRelations()


def relation_key(scan: TableScan, backend: SparkBackend) -> Hashable | None:
    """What the frame of a scan depends on; None if it is not to be kept."""
    if not backend.keeps_relations or type(scan) is not TableScan or scan.row_filter != ALWAYS_TRUE:
        return None
    metadata, version = scan.metadata, scan.version
    return (
        backend.session_id,
        id(scan.io),
        scan.table_identity,
        scan.followed,
        version.snapshot_id,
        scan.branch_read,
        version.schema.schema_id,
        tuple(field.name for field in scan.schema.fields),
        metadata.properties.get(NAME_MAPPING_PROPERTY),
        tuple(spec.spec_id for spec in metadata.partition_specs),
    )


def has_few_files(scan: TableScan) -> bool:
    """Whether a scan reads so few files that it does not matter which of them a query needs."""
    if type(scan) is not TableScan or scan.snapshot_id is None:
        return type(scan) is TableScan
    number = scan.metadata.snapshot(scan.snapshot_id).summary.get(_FILES, "")
    return number.isdecimal() and int(number) <= MOST_FILES_UNFILTERED
