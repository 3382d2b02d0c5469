"""Deletion vectors and Puffin files next to Java's own classes and PyIceberg: byte for byte, both ways."""

import base64
import random
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
from pyiceberg.table.puffin import PuffinFile

from bergline.errors import FormatError
from bergline.format.deletes.deletion_vector import deletion_vector_file, parse_deletion_vector, render_deletion_vector
from bergline.format.deletes.position_set import position_set
from bergline.format.deletes.puffin import Blob, blob_content, parse_puffin, render_puffin
from bergline.format.manifest.manifest import DataFile
from support.servers.peers import OfficialError, OfficialRuntime

official_only = pytest.mark.official

SEEDED = random.Random(20)  # noqa: S311  (sets for a test)
SETS: dict[str, Iterable[int]] = {
    "empty": [],
    "zero": [0],
    "pairs": [1, 2, 100, 101, 70_000, 70_001],
    "one run": range(10, 5_000),
    "two runs": [*range(3), *range(8, 12)],
    "an array that is as long as its run": [1, 2, 3],
    "an array one shorter than its runs": [1, 2, 4, 5],
    "full container": range(65_536),
    "full containers": range(65_536 * 5),
    "all but one": [p for p in range(65_536) if p != 77],
    "largest array": range(0, 8_192, 2),
    "smallest bitset": range(0, 8_194, 2),
    "every other": range(0, 200_000, 2),
    "runs of seven": [p for p in range(100_000) if p % 9 < 7],
    "bitset as large as its runs": [p for p in range(65_536) if p % 32 < 20],
    "three containers with a run": [*range(100), 65_536 * 3, 65_536 * 7],
    "four containers with a run": [*range(100), 65_536 * 3, 65_536 * 7, 65_536 * 9],
    "sparse": SEEDED.sample(range(2**31), 2_000),
    "dense": SEEDED.sample(range(300_000), 60_000),
    "last of the first key": [2**32 - 1],
    "first of the second key": [2**32],
    "later keys": [5, 2**33 + 1, 2**33 + 2, 2**33 + 3, 2**35],
    "a run over two keys": range(2**32 - 300, 2**32 + 300),
    "runs of random lengths": [p for s in range(8) for p in range(s * 40_000, s * 40_000 + SEEDED.randrange(20_000))],
    **{f"random {i}": SEEDED.sample(range(10 ** (2 + i)), 5 * 10**i) for i in range(5)},
}
JAVA = """
import base64

def vector(positions):
    numbers = jvm.com.google.common.primitives.Longs.stringConverter().convertAll(
        jvm.com.google.common.base.Splitter.on(",").omitEmptyStrings().split(positions))
    iterables = jvm.org.apache.iceberg.io.CloseableIterable
    return jvm.org.apache.iceberg.deletes.Deletes.toPositionIndex(iterables.combine(numbers, iterables.empty()))

def listed(iterable):
    return jvm.com.google.common.collect.Lists.newArrayList(iterable.iterator())

def text(buffer):
    return base64.b64encode(bytes(jvm.org.apache.iceberg.util.ByteBuffers.toByteArray(buffer))).decode()

def stated(size, cardinality):
    return (jvm.org.apache.iceberg.FileMetadata.deleteFileBuilder(jvm.org.apache.iceberg.PartitionSpec.unpartitioned())
        .ofPositionDeletes().withFormat("PUFFIN").withPath("x.puffin").withFileSizeInBytes(10)
        .withReferencedDataFile("d.parquet").withContentOffset(4).withContentSizeInBytes(size)
        .withRecordCount(cardinality).build())

def parsed(blob, cardinality):
    data = base64.b64decode(blob)
    return jvm.org.apache.iceberg.deletes.PositionDeleteIndex.deserialize(data, stated(len(data), cardinality))
"""


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


@official_only
def test_vectors_are_the_bytes_that_java_writes(official_runtime: OfficialRuntime) -> None:
    texts = {name: ",".join(map(str, members)) for name, members in SETS.items()}
    code = JAVA + "result = {name: text(vector(positions).serialize()) for name, positions in texts.items()}"
    theirs = official_runtime.python(code, texts=texts)
    ours = {name: b64(render_deletion_vector(position_set(members))) for name, members in SETS.items()}
    assert [name for name in SETS if ours[name] != theirs[name]] == []
    for name, members in SETS.items():
        found = parse_deletion_vector(base64.b64decode(theirs[name]), name, len(set(members)))
        assert found == position_set(members), name


@official_only
def test_java_reads_our_vectors_and_writes_the_same(official_runtime: OfficialRuntime) -> None:
    blobs = {n: (b64(render_deletion_vector(position_set(m))), len(set(m))) for n, m in SETS.items()}
    code = JAVA + "result = {name: text(parsed(*blob).serialize()) for name, blob in blobs.items()}"
    assert official_runtime.python(code, blobs=blobs) == {name: blob for name, (blob, _) in blobs.items()}


@official_only
def test_what_is_broken_is_refused_by_both(official_runtime: OfficialRuntime) -> None:
    for flip in (4, 30, -1):
        blob = bytearray(render_deletion_vector(position_set([1, 2, 9])))
        blob[flip] ^= 1
        with pytest.raises(OfficialError):
            official_runtime.python(JAVA + "parsed(blob, 3)", blob=b64(bytes(blob)))
        with pytest.raises(FormatError):
            parse_deletion_vector(bytes(blob), "f")


@official_only
def test_java_reads_our_puffin_files(official_runtime: OfficialRuntime, tmp_path: Path) -> None:
    blobs = [
        Blob("note", (1, 2), b"plain", snapshot_id=7, sequence_number=3, properties={"k": "v", "é": "ü"}),
        Blob("long", (), b"x" * 100_000, snapshot_id=-1, sequence_number=2**62, compression_codec="zstd"),
        Blob("none", (5,), b"", snapshot_id=1, sequence_number=1),
    ]
    data, metadata = render_puffin(blobs, {"created-by": "bergline"})
    (tmp_path / "ours.puffin").write_bytes(data)
    code = (
        JAVA
        + """
reader = jvm.org.apache.iceberg.puffin.Puffin.read(jvm.org.apache.iceberg.Files.localInput(path)).build()
footer = reader.fileMetadata()
pairs = [(p.first(), p.second()) for p in listed(reader.readAll(footer.blobs()))]
result = {
    "properties": dict(footer.properties()),
    "blobs": [
        [b.type(), list(b.inputFields()), b.snapshotId(), b.sequenceNumber(), b.offset(), b.length(),
         b.compressionCodec(), dict(b.properties()), text(content)] for b, content in pairs
    ],
    "again": jvm.org.apache.iceberg.puffin.FileMetadataParser.toJson(footer, False),
}
reader.close()
"""
    )
    found = official_runtime.python(code, path=str(tmp_path / "ours.puffin"))
    assert found["properties"] == {"created-by": "bergline"}
    assert found["blobs"] == [
        [
            blob.type,
            list(blob.fields),
            blob.snapshot_id,
            blob.sequence_number,
            place.offset,
            place.length,
            blob.compression_codec,
            blob.properties,
            b64(blob.content),
        ]
        for blob, place in zip(blobs, metadata.blobs, strict=True)
    ]
    assert found["again"].encode() in data


@official_only
@pytest.mark.parametrize("codec", ["NONE", "ZSTD"])
def test_we_read_the_puffin_files_of_java(official_runtime: OfficialRuntime, tmp_path: Path, codec: str) -> None:
    """Java writes neither LZ4 blobs nor compressed footers."""
    path = tmp_path / "theirs.puffin"
    code = (
        JAVA
        + """
puffin = jvm.org.apache.iceberg.puffin
writer = puffin.Puffin.write(jvm.org.apache.iceberg.Files.localOutput(path)).createdBy("java").set("p", "q").build()
compression = getattr(puffin.PuffinCompressionCodec, codec)
ints = jvm.java.util.ArrayList()
ints.add(3)
for content in contents:
    writer.write(puffin.Blob("note", ints, 7, 9, jvm.java.nio.ByteBuffer.wrap(content.encode()), compression,
                             {"name": content[:3]}))
writer.finish()
result = [writer.footerSize(), writer.fileSize()]
"""
    )
    contents = ["abcdef", "", "z" * 50_000]
    footer_size, file_size = official_runtime.python(code, path=str(path), codec=codec, contents=contents)
    data = path.read_bytes()
    footer = parse_puffin(data, str(path))
    assert len(data) == file_size
    assert footer.properties == {"created-by": "java", "p": "q"}
    stored = [data[b.offset : b.offset + b.length] for b in footer.blobs]
    assert [blob_content(s, b, "f").decode() for s, b in zip(stored, footer.blobs, strict=True)] == contents
    assert [(b.type, b.fields, b.snapshot_id, b.sequence_number, b.properties) for b in footer.blobs] == [
        ("note", (3,), 7, 9, {"name": content[:3]}) for content in contents
    ]
    if codec == "NONE":
        blobs = [Blob("note", (3,), c.encode(), 7, 9, properties={"name": c[:3]}) for c in contents]
        assert render_puffin(blobs, {"created-by": "java", "p": "q"})[0] == data
        assert footer_size < file_size


@official_only
def test_we_read_the_deletion_vectors_of_a_table(official: Callable[[str], list[tuple[Any, ...]]]) -> None:
    official(
        "CREATE TABLE db.v3 (id BIGINT, p INT) USING iceberg PARTITIONED BY (p) TBLPROPERTIES "
        "('format-version' = '3', 'write.delete.mode' = 'merge-on-read')"
    )
    official("INSERT INTO db.v3 SELECT /*+ COALESCE(1) */ id, CAST(id % 2 AS INT) FROM range(1000) ORDER BY 2, 1")
    official("DELETE FROM db.v3 WHERE id BETWEEN 100 AND 301 OR id = 998")
    columns = "file_path, referenced_data_file, content_offset, content_size_in_bytes, record_count, partition.p"
    deletes = official(f"SELECT {columns} FROM db.v3.delete_files ORDER BY partition.p")
    assert len(deletes) == 2
    for path, referenced, offset, size, count, partition in deletes:
        content = Path(path.removeprefix("file:")).read_bytes()
        blob = next(b for b in parse_puffin(content, path).blobs if b.offset == offset)
        assert (blob.type, blob.length) == ("deletion-vector-v1", size)
        assert blob.properties == {"referenced-data-file": referenced, "cardinality": str(count)}
        deleted = [id_ for id_ in range(1000) if id_ % 2 == partition and (100 <= id_ <= 301 or id_ == 998)]
        positions = parse_deletion_vector(content[offset : offset + size], path, count)
        assert list(positions) == [id_ // 2 for id_ in deleted]
        assert render_deletion_vector(positions) == content[offset : offset + size]


def test_pyiceberg_reads_our_deletion_vectors() -> None:
    """Its vectors come out only where no key is skipped: it asks Arrow for the type of an empty list."""
    named = {name: members for name, members in SETS.items() if {p >> 32 for p in members} in ({0}, {0, 1})}
    vectors = [(DataFile(name, "PARQUET", (), 1, 1), position_set(members)) for name, members in named.items()]
    content, _ = deletion_vector_file("x.puffin", vectors, "bergline")
    theirs = {v.referenced_data_file: v for v in deletion_vectors_from_puffin_file(PuffinFile(content))}
    for name, members in named.items():
        found = [position for chunk in theirs[name].to_vector().chunks for position in chunk.to_pylist()]
        assert found == sorted(set(members)), name
