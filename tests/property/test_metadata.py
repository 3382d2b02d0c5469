"""Metadata survives its file, and updates keep it consistent."""

import json
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from bergline.errors import BerglineError, FormatError, UnsupportedError
from bergline.format.encoding.wire import encode_json
from bergline.format.metadata.apply import apply_updates
from bergline.format.metadata.invariants import check_invariants
from bergline.format.metadata.json import parse_metadata, render_metadata
from bergline.format.metadata.refs import SnapshotRef, SnapshotRefType
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import (
    EncryptedKey,
    MetadataLogEntry,
    SnapshotLogEntry,
    StatisticsFile,
    TableMetadata,
)
from bergline.format.metadata.updates import (
    AddEncryptionKey,
    AddPartitionSpec,
    AddSnapshot,
    AssignUuid,
    RemoveEncryptionKey,
    RemoveSnapshotRef,
    RemoveSnapshots,
    SetDefaultSpec,
    SetLocation,
    SetProperties,
    SetSnapshotRef,
    Update,
    UpgradeFormatVersion,
)
from bergline.format.partition.sort_order import UNSORTED
from bergline.format.partition.spec import parse_partition_by
from bergline.format.schema.schema import Schema
from bergline.format.types.types import LONG, STRING, TIMESTAMPTZ, NestedField

SCHEMA = Schema(
    fields=(
        NestedField(1, "id", True, LONG),
        NestedField(2, "s", False, STRING),
        NestedField(3, "t", False, TIMESTAMPTZ),
    ),
    schema_id=0,
)
SPECS = [[], ["s"], ["bucket(16, id)"], ["month(t)", "truncate(3, s)"]]
NOW = 1_700_000_000_000
ids = st.integers(1, 2**63 - 1)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
keys = st.builds(EncryptedKey, texts, st.binary(max_size=4), st.none() | texts)
summaries = st.just({}) | st.dictionaries(texts, texts, max_size=2).map(lambda more: {"operation": "append"} | more)
positive = st.none() | st.integers(1, 2**31 - 1)


@st.composite
def refs_to(draw: Any, known: list[int]) -> SnapshotRef:
    if draw(st.booleans()):
        return SnapshotRef(draw(st.sampled_from(known)), SnapshotRefType.TAG, max_ref_age_ms=draw(positive))
    return SnapshotRef(
        draw(st.sampled_from(known)), SnapshotRefType.BRANCH, draw(positive), draw(positive), draw(positive)
    )


@st.composite
def snapshots_of(draw: Any, version: int, snapshot_id: int, number: int, known: list[int]) -> Snapshot:
    manifests = draw(st.lists(texts, max_size=2)) if version == 1 and draw(st.booleans()) else None
    listed = manifests is None
    has_rows = version == 3 and listed and draw(st.booleans())
    return Snapshot(
        snapshot_id=snapshot_id,
        timestamp_ms=NOW + number,
        manifest_list=draw(texts) if listed else None,
        manifests=None if manifests is None else tuple(manifests),
        summary=draw(summaries),
        parent_snapshot_id=draw(st.none() | st.sampled_from(known)),
        sequence_number=0 if version == 1 else number,
        schema_id=draw(st.none() | st.just(0)),
        first_row_id=number if has_rows else None,
        added_rows=draw(st.integers(0, 2**40)) if has_rows else None,
        key_id=draw(st.none() | texts) if listed else None,
    )


@st.composite
def tables(draw: Any) -> TableMetadata:
    version = draw(st.sampled_from([1, 2, 3]))
    known = draw(st.lists(ids, max_size=5, unique=True))
    snapshots = tuple(draw(snapshots_of(version, snapshot_id, n, known)) for n, snapshot_id in enumerate(known))
    refs: dict[str, SnapshotRef] = {}
    current = None
    if known:
        refs = draw(st.dictionaries(texts.filter(lambda name: name not in {"", "main"}), refs_to(known), max_size=3))
        current = draw(st.none() | st.sampled_from(known))
        if current is not None:
            refs["main"] = SnapshotRef(current, SnapshotRefType.BRANCH, draw(positive))
    return TableMetadata(
        format_version=version,
        table_uuid=draw(texts if version > 1 else texts | st.none()),
        location=draw(texts) + "t",
        last_sequence_number=0 if version == 1 else len(known),
        last_updated_ms=NOW + 100,
        last_column_id=3,
        current_schema_id=0,
        schemas=(SCHEMA,),
        default_spec_id=0,
        partition_specs=(parse_partition_by(draw(st.sampled_from(SPECS)), SCHEMA),),
        last_partition_id=1001,
        default_sort_order_id=0,
        sort_orders=(UNSORTED,),
        properties=draw(st.dictionaries(texts, texts, max_size=3)),
        current_snapshot_id=current,
        refs=refs,
        snapshots=snapshots,
        statistics=tuple(StatisticsFile(i, "p", 1, 1, ()) for i in known[:1]),
        snapshot_log=tuple(SnapshotLogEntry(NOW + n, i) for n, i in enumerate(known)),
        metadata_log=tuple(MetadataLogEntry(NOW, draw(texts)) for _ in known[:2]),
        next_row_id=draw(st.integers(0, 2**50)) if version == 3 else 0,
        encryption_keys=tuple(draw(st.lists(keys, max_size=2, unique_by=lambda key: key.key_id))),
    )


@settings(max_examples=60)
@given(tables())
def test_metadata_survives_its_file(metadata: TableMetadata) -> None:
    data = render_metadata(metadata)
    assert parse_metadata(data, "x") == metadata
    assert render_metadata(parse_metadata(data, "x")) == data


@settings(max_examples=60)
@given(tables(), st.data())
def test_damaged_file_gives_metadata_or_our_error(metadata: TableMetadata, data: st.DataObject) -> None:
    text = bytearray(render_metadata(metadata))
    for _ in range(data.draw(st.integers(1, 3))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    outcome: TableMetadata | BerglineError
    try:
        outcome = parse_metadata(bytes(text), "damaged.json")
    except (FormatError, UnsupportedError) as error:
        outcome = error
    if isinstance(outcome, TableMetadata):
        assert check_invariants(outcome) is outcome
    else:
        assert str(outcome).endswith("in damaged.json")


@st.composite
def damaged_documents(draw: Any, document: Any) -> Any:
    """A JSON document with one value somewhere replaced, removed or nested."""
    if not isinstance(document, dict | list) or not document or draw(st.integers(0, 3)) == 0:
        odd = [None, True, -1, 2**63, 2**31, 10**30, 1.5, "", "x", "\u0000", [], {}, [document], {"a": document}]
        return draw(st.sampled_from(odd))
    places = list(document) if isinstance(document, dict) else range(len(document))
    place = draw(st.sampled_from(places))
    changed = document.copy()
    if draw(st.integers(0, 5)) == 0:
        del changed[place]
    else:
        changed[place] = draw(damaged_documents(document[place]))
    return changed


@settings(max_examples=100)
@given(tables(), st.data())
def test_damaged_document_gives_metadata_or_our_error(metadata: TableMetadata, data: st.DataObject) -> None:
    document = json.loads(render_metadata(metadata))
    for _ in range(data.draw(st.integers(1, 3))):
        if isinstance(document, dict):
            document = data.draw(damaged_documents(document))
    outcome: TableMetadata | BerglineError
    try:
        outcome = parse_metadata(json.dumps(document).encode(), "damaged.json")
    except (FormatError, UnsupportedError) as error:
        outcome = error
    if isinstance(outcome, TableMetadata):
        assert parse_metadata(render_metadata(outcome), "x") == outcome
    else:
        assert str(outcome).endswith("in damaged.json")


def updates_for(metadata: TableMetadata) -> st.SearchStrategy[Update]:
    known = [*metadata.snapshots_by_id, 1, 2]
    names = st.sampled_from([*metadata.refs, "main", "new"])
    kinds = st.sampled_from(list(SnapshotRefType))
    return st.one_of(
        st.builds(
            lambda i, n, t, rows: AddSnapshot(
                Snapshot(
                    snapshot_id=i,
                    timestamp_ms=NOW + t,
                    manifest_list="m",
                    sequence_number=n,
                    first_row_id=None if rows is None else metadata.next_row_id + rows,
                    added_rows=rows,
                )
            ),
            st.sampled_from(known),
            st.integers(0, 10),
            st.integers(-100_000, 100_000),
            st.none() | st.integers(0, 100),
        ),
        st.builds(UpgradeFormatVersion, st.integers(1, 4)),
        st.builds(AssignUuid, texts),
        st.builds(AddEncryptionKey, keys),
        st.builds(RemoveEncryptionKey, texts),
        st.sampled_from(SPECS).map(lambda terms: AddPartitionSpec(parse_partition_by(terms, SCHEMA))),
        st.builds(SetDefaultSpec, st.integers(-1, 2)),
        st.builds(SetLocation, texts),
        st.builds(SetSnapshotRef, names, st.sampled_from(known), kinds, positive, positive, positive),
        st.builds(RemoveSnapshotRef, names),
        st.lists(st.sampled_from(known), max_size=2).map(lambda i: RemoveSnapshots(tuple(i))),
        st.builds(SetProperties, st.dictionaries(texts, texts, max_size=2)),
    )


@settings(max_examples=80)
@given(tables(), st.data())
def test_updates_give_consistent_metadata_or_our_error(metadata: TableMetadata, data: st.DataObject) -> None:
    updates = data.draw(st.lists(updates_for(metadata), max_size=4))
    try:
        after = apply_updates(metadata, updates, base_location="base.json", now_ms=NOW)
    except BerglineError:
        return
    assert parse_metadata(render_metadata(after), "x") == after
    assert after.last_updated_ms >= metadata.last_updated_ms
    assert after.last_sequence_number >= metadata.last_sequence_number
    assert after.next_row_id >= metadata.next_row_id
    assert after.format_version >= metadata.format_version
    assert after.last_partition_id >= metadata.last_partition_id
    assert after.metadata_log[-1] == MetadataLogEntry(metadata.last_updated_ms, "base.json")
    assert {e.snapshot_id for e in after.snapshot_log} <= set(after.snapshots_by_id)


@settings(max_examples=100)
@given(tables(), tables(), st.data())
def test_known_metadata_changes_nothing_in_what_is_read(
    metadata: TableMetadata, known: TableMetadata, data: st.DataObject
) -> None:
    """Whatever the file and whatever is known: the same metadata, or the same error."""
    joined = msgspec.structs.replace(metadata, snapshots=(*known.snapshots, *metadata.snapshots))
    text = bytearray(render_document(data.draw(st.sampled_from([metadata, joined]))))
    for _ in range(data.draw(st.integers(0, 2))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    found = [parsed(bytes(text), other) for other in (None, metadata, known)]
    assert found[0] == found[1] == found[2]


def render_document(metadata: TableMetadata) -> bytes:
    """The JSON of metadata, consistent or not."""
    fields = {f.replace("_", "-"): getattr(metadata, f) for f in TableMetadata.__struct_fields__}
    return encode_json(fields | {"current-snapshot-id": metadata.current_snapshot_id or -1})


def parsed(data: bytes, known: TableMetadata | None) -> TableMetadata | str:
    try:
        return parse_metadata(data, "x", known)
    except BerglineError as error:
        return f"{type(error).__name__}: {error}"


@settings(max_examples=80)
@given(tables(), st.data())
def test_what_is_kept_from_commit_to_commit_changes_nothing(metadata: TableMetadata, data: st.DataObject) -> None:
    """Indexes, checks and JSON that metadata takes over give what metadata without them gives."""
    for _ in range(data.draw(st.integers(1, 5))):
        render_metadata(metadata)
        updates = data.draw(st.lists(updates_for(metadata) | st.just(next_append(metadata)), min_size=1, max_size=3))
        outcomes = [applied(base, updates) for base in (metadata, msgspec.structs.replace(metadata))]
        assert outcomes[0] == outcomes[1]
        if not isinstance(outcomes[0], TableMetadata):
            continue
        earlier, metadata = metadata, outcomes[0]
        assert metadata.snapshots_by_id == {s.snapshot_id: s for s in metadata.snapshots}
        text = render_metadata(metadata)
        assert text == render_metadata(msgspec.structs.replace(metadata))
        read = parse_metadata(text, "x")
        assert parse_metadata(text, "x", metadata) == read
        assert parse_metadata(text, "x", earlier) == read
        assert parse_metadata(text, "x", msgspec.structs.replace(earlier)) == read
        if data.draw(st.booleans()):
            metadata = parse_metadata(text, "x", earlier)
        document = json.loads(text)
        assert document["snapshots"] == json.loads(msgspec.json.encode(metadata.snapshots))
        assert document["snapshot-log"] == json.loads(msgspec.json.encode(metadata.snapshot_log))
        assert check_invariants(msgspec.structs.replace(metadata)) == metadata


def next_append(metadata: TableMetadata) -> Update:
    """A snapshot that fits behind the others."""
    head = metadata.current_snapshot
    has_rows = metadata.format_version > 2
    return AddSnapshot(
        Snapshot(
            snapshot_id=max(metadata.snapshots_by_id, default=0) // 2 + 3,
            parent_snapshot_id=head and head.snapshot_id,
            timestamp_ms=metadata.last_updated_ms,
            manifest_list="m",
            sequence_number=metadata.next_sequence_number,
            first_row_id=metadata.next_row_id if has_rows else None,
            added_rows=3 if has_rows else None,
        )
    )


def applied(base: TableMetadata, updates: list[Update]) -> TableMetadata | str:
    try:
        return apply_updates(base, updates, base_location="base.json", now_ms=NOW)
    except BerglineError as error:
        return f"{type(error).__name__}: {error}"
