"""The options of a write: where its rows go, what its snapshot's summary says, how its files are laid out."""

import re
from collections.abc import Mapping
from typing import Any, Literal, cast

import msgspec

from bergline.arguments import check_whole
from bergline.errors import InvalidInputError, UnsupportedError
from bergline.format.metadata.refs import check_ref_name
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.table.commits.isolation import NO_ISOLATION, Isolation, parse_isolation
from bergline.table.evolution.properties import check_properties

# options that set for one write what a table property sets for all
_PROPERTIES = {
    "write-format": "write.format.default",
    "target-file-size-bytes": "write.target-file-size-bytes",
    "compression-codec": "write.parquet.compression-codec",
    "compression-level": "write.parquet.compression-level",
    "distribution-mode": "write.distribution-mode",
    "fanout-enabled": "write.spark.fanout.enabled",
}
_SUMMARY = "snapshot-property."
WRITE_OPTIONS = (
    "branch",
    f"{_SUMMARY}…",
    "isolation-level",
    "validate-from-snapshot-id",
    "overwrite-mode",
    "mergeSchema",
    *_PROPERTIES,
)

OverwriteMode = Literal["static", "dynamic"]
_MODES = ("static", "dynamic")
_MERGE_SCHEMA = ("mergeschema", "merge-schema")


class WriteOptions(msgspec.Struct, frozen=True):
    """The options of one write."""

    branch: str | None = None
    summary: dict[str, str] = {}
    """Entries for the snapshot's summary."""
    properties: dict[str, str] = {}
    """Table properties that this write uses instead of the table's own."""
    isolation: Isolation | Literal["none"] | None = None
    """What others may do to the rows that an overwrite replaces; None if the option is not set."""
    validate_from: int | None = None
    """The snapshot from which that is validated; None if the option is not set."""
    overwrite_mode: OverwriteMode | None = None
    merge_schema: bool = False
    """Whether the table takes over columns that the rows have and it has not."""

    @property
    def goes_by_reads(self) -> bool:
        """Whether an overwrite is validated from the snapshot that its rows were read from."""
        return self.isolation != NO_ISOLATION and self.validate_from is None

    def applied_to(self, metadata: TableMetadata) -> TableMetadata:
        """The table's metadata with the properties of this write."""
        if not self.properties:
            return metadata
        check_properties(self.properties, metadata.schema, base=metadata.properties)
        return msgspec.structs.replace(metadata, properties={**metadata.properties, **self.properties})


def parse_write_options(given: Mapping[str, Any]) -> WriteOptions:
    """The options, whose names ignore case; what is not understood is refused rather than ignored."""
    summary: dict[str, str] = {}
    properties: dict[str, str] = {}
    chosen: dict[str, Any] = {}
    for key, value in given.items():
        name, text = key.lower(), _text(key, value)
        if name == "branch":
            check_ref_name(text)
            chosen["branch"] = text
        elif name.startswith(_SUMMARY) and len(name) > len(_SUMMARY):
            summary[key[len(_SUMMARY) :]] = text
        elif name == "isolation-level":
            none = text.lower() == NO_ISOLATION
            chosen["isolation"] = NO_ISOLATION if none else parse_isolation(text, f"option `{key}`")
        elif name == "validate-from-snapshot-id":
            chosen["validate_from"] = _snapshot_id(key, text)
        elif name == "overwrite-mode":
            chosen["overwrite_mode"] = _overwrite_mode(key, text)
        elif name in _MERGE_SCHEMA:
            chosen["merge_schema"] = _true_or_false(key, text)
        elif name in _PROPERTIES:
            properties[_PROPERTIES[name]] = text
        else:
            raise UnsupportedError(f"expected one of the options {', '.join(WRITE_OPTIONS)}, found `{key}`")
    return WriteOptions(summary=summary, properties=properties, **chosen)


def _text(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | float):
        raise InvalidInputError(f"expected text for option `{key}`, found {value!r}")
    return str(value)


def _true_or_false(key: str, text: str) -> bool:
    if text.lower() not in {"true", "false"}:
        raise InvalidInputError(f"expected true or false for option `{key}`, found `{text}`")
    return text.lower() == "true"


def _snapshot_id(key: str, text: str) -> int:
    if not re.fullmatch("-?[0-9]+", text):
        raise InvalidInputError(f"expected the id of a snapshot for option `{key}`, found `{text}`")
    return check_whole(int(text), f"option `{key}`")


def _overwrite_mode(key: str, text: str) -> OverwriteMode:
    if text.lower() not in _MODES:
        raise InvalidInputError(f"expected {' or '.join(_MODES)} for option `{key}`, found `{text}`")
    return cast("OverwriteMode", text.lower())
