"""Inheritance said twice, for single entries and for columns, is one thing; rewriting a manifest loses nothing."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from bergline.errors import FormatError
from bergline.format.manifest.avro import parse_manifest, render_manifest
from bergline.format.manifest.columns import read_manifest_columns
from bergline.format.manifest.inheritance import (
    MANIFEST,
    assign_numbers,
    assign_row_ids,
    deleted_entry,
    existing_entry,
    inherit,
    inherit_columns,
)
from bergline.format.manifest.manifest import DataFile, EntryStatus, ManifestContent, ManifestEntry, ManifestFile
from bergline.format.manifest.summary import describe_manifest
from bergline.format.partition.spec import UNPARTITIONED
from bergline.format.schema.schema import Schema
from bergline.format.types.types import LONG, NestedField

SCHEMA = Schema(fields=(NestedField(1, "id", True, LONG),), schema_id=0)
RESOLVED = ("snapshot_id", "sequence_number", "file_sequence_number", "first_row_id")
Found = TypeVar("Found")

sometimes_large = st.integers(0, 1000) | st.integers(2**63 - 1000, 2**63 - 1)
row_counts = st.integers(0, 50) | st.sampled_from([2**62, 2**63 - 1])
numbers = st.none() | st.integers(0, 2**40)


@st.composite
def entries(draw: st.DrawFn, rows: st.SearchStrategy[int] = row_counts) -> ManifestEntry:
    """An entry with any of its numbers left out, mostly as writers may leave them out."""
    status = draw(st.sampled_from(EntryStatus))
    file = DataFile("f", "PARQUET", (), draw(rows), 1, first_row_id=draw(st.none() | st.integers(0, 2**40)))
    if status is EntryStatus.ADDED or not draw(st.integers(0, 9)):
        return ManifestEntry(status, file, draw(numbers), draw(numbers), draw(numbers))
    return ManifestEntry(status, file, draw(numbers), draw(st.integers(0, 9)), draw(st.integers(0, 9)))


manifests = st.builds(
    ManifestFile,
    st.just("memory:/m"),
    st.just(1),
    st.just(0),
    st.sampled_from([ManifestContent.DATA, ManifestContent.DATA, ManifestContent.DELETES]),
    st.integers(1, 2**40),
    sequence_number=st.sampled_from([None, 0, 0, 7, 8, 9, 2**40]),
    first_row_id=st.none() | sometimes_large,
)


def outcome(act: Callable[[], Found]) -> Found | None:
    """What comes out, or None for a FormatError."""
    try:
        return act()
    except FormatError:
        return None


def plain(entry: ManifestEntry) -> tuple[Any, ...]:
    return entry.snapshot_id, entry.sequence_number, entry.file_sequence_number, entry.data_file.first_row_id


@settings(max_examples=100)
@given(st.lists(st.tuples(manifests, st.lists(entries(), max_size=5)), min_size=1, max_size=4))
def test_columns_inherit_just_as_single_entries_do(
    written: Sequence[tuple[ManifestFile, Sequence[ManifestEntry]]],
) -> None:
    frames = [
        read_manifest_columns(render_manifest(inside, SCHEMA, UNPARTITIONED, format_version=3), "m")
        for _, inside in written
    ]
    single = outcome(lambda: [plain(e) for manifest, inside in written for e in inherit(inside, manifest)])
    batch = outcome(lambda: inherit_columns(frames, [manifest for manifest, _ in written]))
    assert (None if batch is None else batch.select(RESOLVED).rows()) == single
    if batch is not None:
        places = [place for place, (_, inside) in enumerate(written) for _ in inside]
        assert batch[MANIFEST].to_list() == places
        assert batch["record_count"].to_list() == [e.data_file.record_count for _, inside in written for e in inside]


def test_manifests_of_every_version_inherit_side_by_side() -> None:
    file = DataFile("f", "PARQUET", (), 5, 1)
    written = {
        1: [ManifestEntry(EntryStatus.EXISTING, file, 4)],
        2: [ManifestEntry(EntryStatus.ADDED, file), ManifestEntry(EntryStatus.DELETED, file, 6, 2, 1)],
        3: [ManifestEntry(EntryStatus.ADDED, file), ManifestEntry(EntryStatus.ADDED, file)],
    }
    rows = [ManifestFile("m", 1, 0, ManifestContent.DATA, 9, n, n, first_row_id=i) for n, i in [(0, 10), (6, None)]]
    rows.append(msgspec.structs.replace(rows[1], first_row_id=20))
    data = {v: render_manifest(inside, SCHEMA, UNPARTITIONED, format_version=v) for v, inside in written.items()}
    frames = [read_manifest_columns(d, "m") for d in data.values()]
    expected = [(4, 0, 0, 10), (9, 6, 6, None), (6, 2, 1, None), (9, 6, 6, 20), (9, 6, 6, 25)]
    assert inherit_columns(frames, rows).select(RESOLVED).rows() == expected
    stored = [parse_manifest(d, UNPARTITIONED, SCHEMA, "m") for d in data.values()]
    assert [plain(e) for m, inside in zip(rows, stored, strict=True) for e in inherit(inside, m)] == expected
    assert inherit_columns(frames[:1], rows[:1]).schema[MANIFEST] == pl.UInt32


@settings(max_examples=100)
@given(st.lists(entries(st.integers(0, 50)), max_size=6), st.none() | st.integers(0, 1000), st.data())
def test_rewritten_manifest_keeps_every_row_id_and_number(
    inside: list[ManifestEntry], first_row_id: int | None, data: st.DataObject
) -> None:
    """As an overwrite does it: resolved, some removed, written anew, numbered by a later list, read again."""
    source = ManifestFile("m", 1, 0, ManifestContent.DATA, 9, 2**40, 0, first_row_id=first_row_id)
    resolved = [e for e in outcome(lambda: list(inherit(inside, source))) or [] if e.is_live]
    removed = [data.draw(st.booleans()) for _ in resolved]
    moved = [deleted_entry(e, 77) if gone else existing_entry(e) for e, gone in zip(resolved, removed, strict=True)]
    described = describe_manifest(
        "n", 1, moved, spec=UNPARTITIONED, schema=SCHEMA, content=ManifestContent.DATA, snapshot_id=77
    )
    (row,), taken = assign_row_ids(assign_numbers([described], 77, 2**41), 5000)
    rendered = render_manifest(moved, SCHEMA, UNPARTITIONED, format_version=3)
    found = list(inherit(parse_manifest(rendered, UNPARTITIONED, SCHEMA, "n"), row))
    for before, gone, after in zip(resolved, removed, found, strict=True):
        assert (after.sequence_number, after.file_sequence_number) == plain(before)[1:3]
        assert after.snapshot_id == (77 if gone else before.snapshot_id)
        if before.data_file.first_row_id is not None or gone:
            assert after.data_file.first_row_id == before.data_file.first_row_id
        else:
            assert after.data_file.first_row_id is not None
            assert 5000 <= after.data_file.first_row_id <= 5000 + taken - after.data_file.record_count
    live = [e for e, gone in zip(resolved, removed, strict=True) if not gone]
    assert row.min_sequence_number == min((e.sequence_number for e in live), default=2**41)
    assert row.first_row_id == 5000
    assert taken == sum(e.data_file.record_count for e in live)
