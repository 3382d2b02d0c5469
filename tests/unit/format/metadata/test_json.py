"""Metadata files: what other writers wrote is read, what we write is exact."""

import copy
import json
from typing import Any

import msgspec
import pytest

from bergline.errors import FormatError, UnsupportedError
from bergline.format.metadata.json import parse_metadata, parse_unchecked_metadata, render_metadata
from bergline.format.metadata.refs import SnapshotRef, SnapshotRefType
from bergline.format.metadata.table_metadata import TableMetadata
from support.fixtures.refs_example import REFS_EXAMPLE

REQUIRED = [
    "format-version",
    "table-uuid",
    "location",
    "last-sequence-number",
    "last-updated-ms",
    "last-column-id",
    "current-schema-id",
    "schemas",
    "default-spec-id",
    "partition-specs",
    "last-partition-id",
    "default-sort-order-id",
    "sort-orders",
]


def parse(document: Any) -> TableMetadata:
    return parse_metadata(json.dumps(document).encode(), "v3.json")


def test_refs_example_loads(document: dict[str, Any]) -> None:
    example = json.loads(REFS_EXAMPLE)
    ids = [ref["snapshot-id"] for ref in example["refs"].values()]
    for snapshot, snapshot_id in zip(document["snapshots"], ids, strict=True):
        snapshot["snapshot-id"] = snapshot_id
        snapshot.pop("parent-snapshot-id", None)
    metadata = parse(document | example | {"snapshot-log": []})
    branch, tag = SnapshotRefType.BRANCH, SnapshotRefType.TAG
    assert metadata.refs == {
        "main": SnapshotRef(8027658604211071520, branch, 10, 604_800_000),
        "staging": SnapshotRef(7935847293847561234, branch, 3, 86_400_000),
        "v2.0-release": SnapshotRef(6891234567890123456, tag, max_ref_age_ms=31_536_000_000),
    }
    assert metadata.current_snapshot == metadata.snapshot(8027658604211071520)
    assert json.loads(render_metadata(metadata))["refs"] == example["refs"]


def test_document_comes_back_as_it_was(document: dict[str, Any]) -> None:
    assert json.loads(render_metadata(parse(document))) == document


def test_keys_are_written_in_the_order_of_java(document: dict[str, Any]) -> None:
    assert list(json.loads(render_metadata(parse(document)))) == [
        *REQUIRED,
        "properties",
        "current-snapshot-id",
        "refs",
        "snapshots",
        "statistics",
        "partition-statistics",
        "snapshot-log",
        "metadata-log",
    ]


@pytest.mark.parametrize("none", [-1, None, "missing"])
def test_table_without_snapshots_is_written_with_minus_one(document: dict[str, Any], none: Any) -> None:
    document |= {"current-snapshot-id": none, "refs": {}, "snapshots": [], "snapshot-log": []}
    if none == "missing":
        del document["current-snapshot-id"]
    metadata = parse(document)
    assert metadata.current_snapshot_id is None
    assert json.loads(render_metadata(metadata))["current-snapshot-id"] == -1


def test_missing_refs_are_made_from_the_current_snapshot(document: dict[str, Any]) -> None:
    del document["refs"]
    assert parse(document).refs == {"main": SnapshotRef(103, SnapshotRefType.BRANCH)}


def test_missing_main_is_made_from_the_current_snapshot(document: dict[str, Any]) -> None:
    del document["refs"]["main"]
    assert set(parse(document).refs) == {"main", "audit", "v1"}


def test_lists_may_be_missing_and_unknown_keys_are_ignored(document: dict[str, Any]) -> None:
    for key in ("properties", "statistics", "partition-statistics", "metadata-log"):
        del document[key]
    metadata = parse(document | {"from-the-future": {"a": 1}})
    assert (metadata.properties, metadata.metadata_log) == ({}, ())


def test_statistics_survive(document: dict[str, Any]) -> None:
    blob = {"type": "apache-datasketches-theta-v1", "snapshot-id": 103, "sequence-number": 3, "fields": [1]}
    document["statistics"] = [
        {
            "snapshot-id": 103,
            "statistics-path": "s.puffin",
            "file-size-in-bytes": 5,
            "file-footer-size-in-bytes": 2,
            "blob-metadata": [blob | {"properties": {"ndv": "3"}}],
        }
    ]
    document["partition-statistics"] = [{"snapshot-id": 103, "statistics-path": "p", "file-size-in-bytes": 5}]
    assert json.loads(render_metadata(parse(document))) == document


@pytest.mark.parametrize("version", [4, 0, -1])
def test_other_format_versions_are_not_supported(document: dict[str, Any], version: int) -> None:
    with pytest.raises(UnsupportedError, match=rf"format version of 1 to 3, found {version} in v3\.json"):
        parse(document | {"format-version": version})


@pytest.mark.parametrize("key", REQUIRED)
def test_missing_required_key_is_named(document: dict[str, Any], key: str) -> None:
    del document[key]
    with pytest.raises(FormatError, match=rf"`{key}` at \$ in v3\.json"):
        parse(document)


MALFORMED: dict[str, tuple[list[Any], Any, str]] = {
    "text for a long": (["snapshots", 2, "snapshot-id"], "103", r"\$\.snapshots\[2\]\.snapshot-id"),
    "float for a long": (["last-updated-ms"], 1.5, r"\$\.last-updated-ms"),
    "number above 64 bits": (["current-snapshot-id"], 2**63, r"\$\.current-snapshot-id"),
    "time that no timestamp has": (["snapshots", 0, "timestamp-ms"], 2**62, r"\$\.snapshots\[0\]\.timestamp-ms"),
    "time before all timestamps": (["snapshot-log", 0, "timestamp-ms"], -(2**62), r"\$\.snapshot-log\[0\]"),
    "last change at no time": (["last-updated-ms"], 2**62, r"\$\.last-updated-ms"),
    "huge number": (["snapshots", 0, "timestamp-ms"], 10**40, r"\$\.snapshots\[0\]\.timestamp-ms"),
    "id above 32 bits": (["schemas", 0, "fields", 0, "id"], 2**31, r"\$\.schemas\[0\]\.fields\[0\]\.id"),
    "object for a list": (["schemas"], {}, r"\$\.schemas"),
    "number for a property": (["properties", "owner"], 5, r"\$\.properties\[\.\.\.\]"),
    "unknown type": (["schemas", 0, "fields", 1, "type"], "txt", r"\$\.schemas\[0\]\.fields\[1\]\.type"),
    "unknown ref type": (["refs", "v1", "type"], "twig", r"\$\.refs\[\.\.\.\]\.type"),
    "zero retention": (["refs", "audit", "min-snapshots-to-keep"], 0, r"\$\.refs\[\.\.\.\]"),
    "bad transform": (["partition-specs", 0, "fields", 0, "transform"], 7, r"partition-specs\[0\]\.fields\[0\]"),
    "null summary": (["snapshots", 1, "summary"], None, r"\$\.snapshots\[1\]\.summary"),
}


@pytest.mark.parametrize(("path", "value", "place"), MALFORMED.values(), ids=list(MALFORMED))
def test_malformed_value_names_its_place(document: dict[str, Any], path: list[Any], value: Any, place: str) -> None:
    target: Any = document
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = value
    with pytest.raises(FormatError, match=rf"at .*{place.removeprefix(chr(92) + '$')}.* in v3\.json"):
        parse(document)


def test_dangling_ref_names_ref_and_file(document: dict[str, Any]) -> None:
    document["refs"]["v1"]["snapshot-id"] = 5
    with pytest.raises(FormatError, match=r"known snapshot for ref `v1`, found 5 in v3\.json"):
        parse(document)


def test_duplicate_column_ids_are_refused(document: dict[str, Any]) -> None:
    document["schemas"][0]["fields"][1]["id"] = 1
    with pytest.raises(FormatError, match=r"found 1 for `id` and `region` at \$\.schemas\[0\] in v3\.json"):
        parse(document)


def test_truncated_file_is_refused_wherever_it_is_cut(document: dict[str, Any]) -> None:
    data = json.dumps(document).encode()
    for cut in range(len(data)):
        with pytest.raises(FormatError, match=r"in v3\.json"):
            parse_metadata(data[:cut], "v3.json")


def every_value(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [p for k, v in items for p in ((*path, k), *every_value(v, (*path, k)))]


@pytest.mark.parametrize("wrong", [None, True, -5, 2**70, "x", [], {}, [[]], {"a": {}}], ids=repr)
def test_wrong_value_anywhere_gives_metadata_or_our_error(document: dict[str, Any], wrong: Any) -> None:
    problems = []
    for path in every_value(document):
        changed = copy.deepcopy(document)
        target = changed
        for step in path[:-1]:
            target = target[step]
        target[path[-1]] = wrong
        try:
            render_metadata(parse(changed))
        except (FormatError, UnsupportedError) as error:
            problems.append(str(error))
    assert problems
    assert all(text.endswith("in v3.json") for text in problems)


def test_inconsistent_metadata_is_never_written(metadata: TableMetadata) -> None:
    with pytest.raises(FormatError, match="up to 1, found 2"):
        render_metadata(msgspec.structs.replace(metadata, last_sequence_number=1))


HOSTILE: dict[str, tuple[bytes, bytes]] = {
    "lone surrogate": (b'"ann"', b'"\\ud800"'),
    "bytes that are no UTF-8": (b'"ann"', b'"\xff"'),
    "surrogate as bytes": (b'"ann"', b'"\xed\xa0\x80"'),
    "NaN": (b'"last-column-id": 3', b'"last-column-id": NaN'),
    "infinity": (b'"last-column-id": 3', b'"last-column-id": -Infinity'),
    "exponent": (b'"last-column-id": 3', b'"last-column-id": 3e0'),
    "number of 5,000 digits": (b'"last-column-id": 3', b'"last-column-id": ' + b"9" * 5000),
    "number beyond doubles": (b'"last-column-id": 3', b'"last-column-id": 1e999'),
    "lists in lists without end": (b'"properties"', b'"x": ' + b"[" * 200_000 + b"]" * 200_000 + b', "properties"'),
    "lists never closed": (b'"properties"', b'"properties": ' + b"[" * 200_000),
    "types in types without end": (b'"long"', b'{"type":"list","element":' * 5000 + b'"long"' + b"}" * 5000),
    "trailing text": (b"}", b"} x"),
}


@pytest.mark.parametrize(("old", "new"), HOSTILE.values(), ids=list(HOSTILE))
def test_hostile_bytes_are_refused(document: dict[str, Any], old: bytes, new: bytes) -> None:
    data = json.dumps(document).encode()
    at = data.rindex(old) if new.startswith(b"}") else data.index(old)
    with pytest.raises(FormatError, match=r"in v3\.json"):
        parse_metadata(data[:at] + new + data[at + len(old) :], "v3.json")


def test_of_a_key_given_twice_the_last_counts_as_in_java(document: dict[str, Any]) -> None:
    data = json.dumps(document).encode().replace(b'"last-column-id": 3', b'"last-column-id": 9, "last-column-id": 3')
    assert parse_metadata(data, "v3.json").last_column_id == 3


def test_metadata_that_contradicts_itself_is_parsed_unchecked(document: dict[str, Any]) -> None:
    document["refs"]["lost"] = {"snapshot-id": 1, "type": "tag"}
    data = json.dumps(document).encode()
    with pytest.raises(FormatError, match="known snapshot for ref `lost`"):
        parse_metadata(data, "file")
    assert parse_unchecked_metadata(data, "file").refs["lost"].snapshot_id == 1
    del document["schemas"]
    with pytest.raises(FormatError, match="schemas"):
        parse_unchecked_metadata(json.dumps(document).encode(), "file")
