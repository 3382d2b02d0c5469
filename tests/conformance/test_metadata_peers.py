"""Metadata files next to Java and PyIceberg, both ways: the same bytes, the same refusals."""

import copy
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table.metadata import TableMetadataUtil

from bergline.errors import FormatError, UnsupportedError
from bergline.format.metadata.gzip import pack, unpack
from bergline.format.metadata.json import parse_metadata, render_metadata
from bergline.format.view.json import parse_view_metadata, render_view_metadata
from support.fixtures.metadata_documents import oldest_table_document, table_document, view_document
from support.servers.peers import OfficialRuntime

DOCUMENTS: dict[str, Callable[[], dict[str, Any]]] = {
    "v1": lambda: table_document(1),
    "v2": lambda: table_document(2),
    "v3": lambda: table_document(3),
    "oldest v1": oldest_table_document,
    "view": view_document,
}

READ_AND_WRITE = """
from py4j import java_gateway, protocol

parser = jvm.org.apache.iceberg.view.ViewMetadataParser if view else jvm.org.apache.iceberg.TableMetadataParser
result = []
of_pyspark, java_gateway.get_return_value = java_gateway.get_return_value, protocol.get_return_value
try:
    for text in texts:
        try:
            result.append(parser.toJson(parser.fromJson(text)))
        except protocol.Py4JJavaError:
            result.append(None)
finally:
    java_gateway.get_return_value = of_pyspark
"""
"""What Java makes of each text; None where it refuses it. PySpark would ask two dozen things about each error."""


def ours(name: str, text: str) -> str | None:
    """What we make of a file; None where we refuse it."""
    try:
        if name == "view":
            return render_view_metadata(parse_view_metadata(text.encode(), "file")).decode()
        return render_metadata(parse_metadata(text.encode(), "file")).decode()
    except (FormatError, UnsupportedError) as error:
        assert str(error).endswith("in file")  # noqa: PT017  (refusing is one of the two right answers)
        return None


@pytest.mark.parametrize("name", DOCUMENTS)
def test_java_makes_the_same_bytes_of_a_file(official_runtime: OfficialRuntime, name: str) -> None:
    text = json.dumps(DOCUMENTS[name]())
    (java,) = official_runtime.python(READ_AND_WRITE, view=name == "view", texts=[text])
    assert ours(name, text) == java
    # and of its own bytes, and of ours
    assert ours(name, java) == java
    assert official_runtime.python(READ_AND_WRITE, view=name == "view", texts=[ours(name, text)]) == [java]


GONE, TWICE = "<gone>", "<twice>"
WRONG = [GONE, TWICE, None, True, -5, 0, 2**70, 1.0, "x", "", [], {}, {"a": {}}]

# where (document, path, what stands there instead) Java and bergline part, and why that is right
EXCUSED: list[tuple[str, str, str]] = [
    (r".*", r"parent-snapshot-id=None", "null for a root harms nobody; we never write it"),
    (
        r".*",
        r"(snapshot|metadata)-log=(?!None|\[)",
        "Java reads anything as an empty log, we null alone",
    ),
    (r"v1", r"(schema|partition-spec)=", "Java looks at the old keys only where the new are missing; broken is broken"),
    (r"v1", r"partition-spec/\d/(transform=''|field-id=0)", "as above"),
    (r"v1", r"schema/identifier-field-ids=None|schema/type='<gone>'", "as above"),
    (r"v1", r"format-version=(-5|0)", "no such version; Java reads it as 1"),
    (r".*", r"schemas?(/\d)?/type='<gone>'", "a schema can be nothing but a struct"),
    (r".*", r"schemas?(/\d)?/identifier-field-ids=None", "no writer gives null, they leave it out"),
    (r".*", r"schemas?(/\d)?/identifier-field-ids/0='<twice>'", "we write them back as they were"),
    (r".*", r"fields/\d/transform=''|partition-spec/\d/transform=''", "an empty text names no transform"),
    (r".*", r"fields/\d/field-id=0", "0 is no id of a partition field, they start at 1000"),
    (r".*", r"default-(spec|sort-order)-id=", "Java fails at the first use of a spec or order that is not there"),
    (r".*", r"(partition-specs|sort-orders)/1(/(spec|order)-id)?=", "as above"),
    (r".*", r"refs={}|refs/main='<gone>'", "we add the `main` that the current snapshot means"),
    (r"v[23]", r"snapshots/\d/sequence-number=-5", "Java leaves negative numbers out; we keep what stands there"),
    (r"v3", r"encryption-keys/\d='<twice>'", "Java fails at the next commit"),
    (r"view", r"(current-version-id|versions|versions/1(/(version|schema)-id)?)=", "Java fails at the first use"),
    (r"view", r"schemas(/1(/schema-id)?)?=", "as above"),
    (
        r"view",
        r"representations/\d/type='x?'",
        "Java reads unknown ones but cannot write them",
    ),
]


def every_place(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from every_place(inner, (*path, key))


def broken(name: str) -> Iterator[tuple[str, str]]:
    """Every place of a document with wrong values in it: what was done, and the text.

    Each place gets a third of the values, and in the next document the next third: all of them take minutes.
    """
    document, third = DOCUMENTS[name](), list(DOCUMENTS).index(name)
    for number, path in enumerate(every_place(document)):
        for wrong in WRONG[(number + third) % 3 :: 3]:
            changed = copy.deepcopy(document)
            target = changed
            for step in path[:-1]:
                target = target[step]
            if wrong == GONE:
                del target[path[-1]]
            elif wrong != TWICE:
                target[path[-1]] = wrong
            elif isinstance(target, list):
                target.append(copy.deepcopy(target[path[-1]]))
            else:
                continue
            yield f"{'/'.join(map(str, path))}={wrong!r}", json.dumps(changed)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_java_refuses_a_broken_file_if_and_only_if_we_do(official_runtime: OfficialRuntime, name: str) -> None:
    cases = list(broken(name))
    answers = official_runtime.python(READ_AND_WRITE, view=name == "view", texts=[text for _, text in cases])
    parted = []
    for (what, text), java in zip(cases, answers, strict=True):
        mine = ours(name, text)
        same = mine is None if java is None else mine is not None and json.loads(mine) == json.loads(java)
        if not same and not any(re.fullmatch(d, name) and re.search(p, what) for d, p, _ in EXCUSED):
            parted.append((what, java and "read by Java", mine and "read by us"))
    assert parted == []


@pytest.mark.parametrize("name", ["v1", "v2"])
def test_pyiceberg_writes_back_what_we_write(name: str) -> None:
    written = ours(name, json.dumps(DOCUMENTS[name]()))
    assert written is not None
    theirs = TableMetadataUtil.parse_raw(written).model_dump_json()
    assert parse_metadata(theirs.encode(), "theirs") == parse_metadata(written.encode(), "ours")


def test_pyiceberg_reads_v3_as_we_write_it() -> None:
    written = ours("v3", json.dumps(table_document(3)))
    assert written is not None
    theirs = TableMetadataUtil.parse_raw(written)
    mine = parse_metadata(written.encode(), "ours")
    assert (theirs.format_version, theirs.next_row_id) == (3, mine.next_row_id)
    assert [s.snapshot_id for s in theirs.snapshots] == [s.snapshot_id for s in mine.snapshots]
    assert {n: (r.snapshot_id, r.snapshot_ref_type.value) for n, r in theirs.refs.items()} == {
        n: (r.snapshot_id, r.snapshot_ref_type.value) for n, r in mine.refs.items()
    }


FILES = """
files, parser = jvm.org.apache.iceberg.Files, jvm.org.apache.iceberg.TableMetadataParser
parser.write(parser.fromJson(text), files.localOutput(theirs))
result = [parser.toJson(parser.read(files.localInput(path))) for path in mine]
"""


def test_compressed_files_go_both_ways(official_runtime: OfficialRuntime, tmp_path: Path) -> None:
    text = render_metadata(parse_metadata(json.dumps(table_document(2)).encode(), "document"))
    mine = [tmp_path / "00001-u.gz.metadata.json", tmp_path / "v2.metadata.json.gz", tmp_path / "v3.metadata.json"]
    for path in mine:
        path.write_bytes(pack(text, str(path)))
    theirs = tmp_path / "00002-u.gz.metadata.json"
    names = {"text": text.decode(), "theirs": str(theirs), "mine": [str(path) for path in mine]}
    assert official_runtime.python(FILES, **names) == [text.decode()] * 3
    assert theirs.read_bytes()[:2] == b"\x1f\x8b"
    assert unpack(theirs.read_bytes(), str(theirs)) == text
