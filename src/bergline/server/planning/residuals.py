"""The residual filter of each file, in the client's own JSON."""

from typing import Any

from msgspec import Raw

from bergline.expressions.predicate import ALWAYS_FALSE, ALWAYS_TRUE, Predicate
from bergline.expressions.residual import residual
from bergline.format.encoding.wire import encode_json
from bergline.format.manifest.manifest import DataFile, partition_key
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.schema.schema import Schema
from bergline.server.planning.filters import WireFilter, has_long_lists, reduced, render_filter

WHOLE = Raw(b"true")
"""Every row of the file matches."""
NOTHING = Raw(b"false")
"""No row of the file matches."""
_MAX_CACHED_BYTES = 4096


class Residuals:
    """A filter without what is decided by a file's partition, computed once for each, and by the file's bounds.

    It is exact, however long: PyIceberg counts the rows of a file without one as they are, and Java's generic readers
    have nothing else to filter by.
    """

    def __init__(self, filter_: WireFilter, metadata: TableMetadata, schema: Schema) -> None:
        self._filter = filter_
        self._specs = metadata.specs_by_id
        self._schema = schema
        self._reduced: dict[Any, WireFilter] = {}
        self._known: dict[Any, Raw] = {}
        self.needs_bounds = has_long_lists(filter_)

    def of(self, file: DataFile) -> Raw:
        """What is left for the rows of a file, as JSON."""
        key = partition_key(file)
        found = self._known.get(key)
        if found is None:
            found = _raw(render_filter(self._left(key, file), file))
            if not self.needs_bounds and len(bytes(found)) <= _MAX_CACHED_BYTES:
                self._known[key] = found
        return found

    def _left(self, key: Any, file: DataFile) -> WireFilter:
        """What the file's partition leaves of the filter."""
        found = self._reduced.get(key)
        if found is None:
            spec = self._specs[file.spec_id]

            def decide(predicate: Predicate) -> bool | None:
                left = residual(predicate, spec, file.partition, self._schema)
                return True if left == ALWAYS_TRUE else False if left == ALWAYS_FALSE else None

            found = self._reduced[key] = reduced(self._filter, decide)
        return found


def _raw(wire: Any) -> Raw:
    if isinstance(wire, bool):
        return WHOLE if wire else NOTHING
    return Raw(encode_json(wire))
