"""What is left of a filter for the rows of each file, in the client's own words."""

from typing import Any

from msgspec import Raw

from bergline.expressions.predicate import ALWAYS_FALSE, ALWAYS_TRUE, Predicate
from bergline.expressions.residual import residual
from bergline.format.manifest import DataFile, partition_key
from bergline.format.metadata import TableMetadata
from bergline.format.schema import Schema
from bergline.format.wire import encode_json
from bergline.server.wire_filters import WireFilter, reduced

WHOLE = Raw(b"true")
"""Every row of the file matches."""


class Residuals:
    """A filter without the tests that a file's partition decides; worked out once for each partition."""

    def __init__(self, filter_: WireFilter, metadata: TableMetadata, schema: Schema) -> None:
        self._filter = filter_
        self._specs = metadata.specs_by_id
        self._schema = schema
        self._known: dict[Any, Raw] = {}

    def of(self, file: DataFile) -> Raw:
        """What is left for the rows of a file, as JSON."""
        key = partition_key(file)
        found = self._known.get(key)
        if found is None:
            spec = self._specs[file.spec_id]

            def decide(test: Predicate) -> bool | None:
                left = residual(test, spec, file.partition, self._schema)
                return True if left == ALWAYS_TRUE else False if left == ALWAYS_FALSE else None

            text = encode_json(reduced(self._filter, decide))
            found = self._known[key] = WHOLE if text == bytes(WHOLE) else Raw(text)
        return found
