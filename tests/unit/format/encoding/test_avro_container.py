"""Avro files walked block by block."""

import io
import zlib
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from bergline.errors import FormatError
from bergline.format.encoding.avro_container import container_header, encode_bytes, encode_long, read_container

SCHEMA: Any = {"type": "record", "name": "r", "fields": [{"name": "n", "type": "long"}]}
SYNC = b"0123456789abcdef"
RECORDS = b"".join(encode_long(n) for n in range(100))


def written(codec: str = "null", sync_interval: int = 16_000) -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, SCHEMA, [{"n": n} for n in range(100)], codec=codec, sync_interval=sync_interval)
    return out.getvalue()


def made(codec: str, payload: bytes, records: int = 100, sync: bytes = SYNC) -> bytes:
    header = container_header({"avro.schema": b'"long"', "avro.codec": codec.encode()}, SYNC)
    return header + encode_long(records) + encode_bytes(payload) + sync


def snappy(data: bytes) -> bytes:
    return bytes(pa.compress(data, codec="snappy", asbytes=True)) + zlib.crc32(data).to_bytes(4, "big")


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
@pytest.mark.parametrize("sync_interval", [1, 16_000])
def test_blocks_of_any_size_and_codec_are_joined(codec: str, sync_interval: int) -> None:
    found = read_container(written(codec, sync_interval), "f")
    assert (found.records, found.data) == (100, RECORDS)


def test_snappy_and_zstandard_blocks_are_inflated() -> None:
    assert read_container(made("snappy", snappy(RECORDS)), "f").data == RECORDS
    zstd = bytes(pa.compress(RECORDS, codec="zstd", asbytes=True))
    assert read_container(made("zstandard", zstd), "f").data == RECORDS


def test_header_may_come_in_blocks_with_their_size() -> None:
    pair = encode_bytes(b"avro.schema") + encode_bytes(b'"long"')
    data = b"Obj\x01" + encode_long(-1) + encode_long(len(pair)) + pair + b"\x00" + SYNC
    assert read_container(data, "f").metadata == {"avro.schema": b'"long"'}


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "an end or a wrong length at byte 0"),
        (b"PAR1", "other bytes at its start"),
        (b"Obj\x01" + b"\xff" * 5, "an end inside a number at byte 4"),
        (b"Obj\x01" + b"\xff" * 10_000_000, "a number beyond 64 bits"),
        (b"Obj\x01\x02" + encode_long(2**40) + b"x", "an end or a wrong length"),
        (b"Obj\x01\x02" + encode_bytes(b"\xff") + encode_bytes(b""), "a damaged header"),
        (b"Obj\x01\x00" + SYNC, "no schema in its header"),
        (made("lzo", RECORDS), "codec `lzo`, which is none of null, deflate"),
        (made("null", RECORDS, sync=b"x" * 16), "a damaged block"),
        (made("null", RECORDS, records=-1), "a damaged block"),
        (made("deflate", b"\xff\xff"), "a block that cannot be inflated"),
        (made("deflate", zlib.compress(RECORDS, wbits=-15)[:-2]), "a compressed block without its end"),
        (made("snappy", snappy(RECORDS)[:-1] + b"x"), "a block with a wrong checksum"),
        (made("snappy", b""), "cannot be inflated"),
        (made("snappy", b"\xff\xff\xff\xff\x0fxxxx"), "says it inflates to 4,294,967,295 bytes"),
        (made("zstandard", b"nothing of the kind"), "a block that cannot be inflated"),
    ],
)
def test_what_is_damaged_is_named_with_its_source(data: bytes, problem: str) -> None:
    with pytest.raises(FormatError, match=rf"expected an Avro file, found .*{problem}.* in m\.avro"):
        read_container(data, "m.avro")


@pytest.mark.parametrize(
    ("codec", "bomb"),
    [
        ("deflate", zlib.compress(b"\x00" * 10_000_000, wbits=-15)),
        ("zstandard", bytes(pa.compress(b"\x00" * 10_000_000, codec="zstd", asbytes=True))),
    ],
)
def test_block_that_inflates_without_end_is_refused(codec: str, bomb: bytes) -> None:
    assert len(bomb) < 20_000
    with pytest.raises(FormatError, match="blocks that inflate without end"):
        read_container(made(codec, bomb), "m.avro", max_inflated=1_000_000)


def test_file_is_refused_wherever_it_is_cut() -> None:
    data = written("deflate", 1)
    whole = 0
    for cut in range(len(data)):
        try:
            whole += read_container(data[:cut], "f").records < 100
        except FormatError:
            continue
    assert whole == 100  # cut between two blocks it is a shorter file: the manifest list knows better
