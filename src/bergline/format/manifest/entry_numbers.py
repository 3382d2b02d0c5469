"""Only the numbers in the entries of a manifest; a small manifest is read record by record."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final, NamedTuple

import msgspec

from bergline.errors import FormatError
from bergline.format.encoding.avro_container import Container, read_container
from bergline.format.encoding.avro_values import Skip, UnusualAvroError, is_present, read_long, skip_of
from bergline.format.manifest.columns import decode_manifests

_MOST_RECORDS: Final = 1000
"""Larger manifests are read as columns."""
_DATA_FILE: Final = 2
_FIELD_IDS: Final = {
    0: "status",
    1: "snapshot_id",
    3: "sequence_number",
    4: "file_sequence_number",
    134: "content",
    103: "record_count",
    104: "file_size_in_bytes",
    142: "first_row_id",
}


class EntryNumbers(NamedTuple):
    """The numbers that a manifest has for one file, exactly as stored."""

    status: int
    snapshot_id: int | None
    sequence_number: int | None
    file_sequence_number: int | None
    content: int | None
    record_count: int
    file_size_in_bytes: int
    first_row_id: int | None


class _Step(NamedTuple):
    """What to do with one value of a record: skip it, or read it (it may be null)."""

    name: str | None
    skip: Skip | None = None
    optional: bool = False


def read_entry_numbers(
    data: bytes, source: str, most: int | None = None
) -> tuple[dict[str, bytes], Iterable[EntryNumbers]]:
    """The header of a manifest, and the numbers of its entries; FormatError if it is none, or has more entries."""
    container = read_container(data, source)
    if most is not None and container.records > most:
        raise FormatError(f"expected up to {most:,} entries, found {container.records:,} in {source}")
    return container.metadata, _by_record(container) or _by_column(container, source)


def _by_record(container: Container) -> list[EntryNumbers] | None:
    """None if the manifest is large, or unusual in any way."""
    if container.records > _MOST_RECORDS:
        return None
    try:
        steps = _steps(container.metadata["avro.schema"])
        return _entries(container.data, container.records, steps)
    except (UnusualAvroError, IndexError):
        return None


def _by_column(container: Container, source: str) -> Iterable[EntryNumbers]:
    frame = decode_manifests({source: container})[source]
    return map(EntryNumbers._make, frame.select(EntryNumbers._fields).iter_rows())


def _entries(data: bytes, records: int, steps: tuple[_Step, ...]) -> list[EntryNumbers]:
    found: list[EntryNumbers] = []
    at = 0
    for _ in range(records):
        values: dict[str, Any] = dict.fromkeys(EntryNumbers._fields)
        for name, skip, optional in steps:
            if skip is not None:
                at = skip(data, at)
            elif name is not None:
                if optional and not is_present(data, at):
                    at += 1
                else:
                    values[name], at = read_long(data, at + optional)
        if values["status"] not in (0, 1, 2) or values["record_count"] is None or values["file_size_in_bytes"] is None:
            raise UnusualAvroError
        found.append(EntryNumbers(**values))
    if at != len(data):
        raise UnusualAvroError
    return found


@lru_cache(maxsize=64)
def _steps(schema: bytes) -> tuple[_Step, ...]:
    """The values of a manifest's records in order, including those of the file in each."""
    try:
        steps = tuple(_steps_of(msgspec.json.decode(schema)))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, LookupError, TypeError) as error:
        raise UnusualAvroError from error
    named = [step.name for step in steps if step.name is not None]
    if len(set(named)) != len(named):
        raise UnusualAvroError
    return steps


def _steps_of(record: Any) -> list[_Step]:
    if record["type"] != "record":
        raise UnusualAvroError
    steps: list[_Step] = []
    for field in record["fields"]:
        field_id, kind = field["field-id"], field["type"]
        if field_id == _DATA_FILE:
            steps += _steps_of(kind)
        elif field_id in _FIELD_IDS:
            optional = isinstance(kind, list)
            if (kind[1:] if optional else [kind]) not in (["int"], ["long"]) or (optional and kind[0] != "null"):
                raise UnusualAvroError
            steps.append(_Step(_FIELD_IDS[field_id], None, optional))
        else:
            steps.append(_Step(None, skip_of(kind)))
    return steps
