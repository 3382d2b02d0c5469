"""Avro files: blocks, codecs, and damage that decoders do not notice, with polars and without."""

import io
import sys
from typing import Any

import fastavro
import pytest

from bergline.datafiles.formats import avro
from bergline.datafiles.formats.avro import AvroInput
from bergline.errors import FormatError
from bergline.format.encoding.avro_container import encode_long

NUMBERS: Any = {"type": "record", "name": "r", "fields": [{"name": "n", "type": "long"}, {"name": "v", "type": "null"}]}


@pytest.fixture(params=["polars", "python"], autouse=True)
def decoder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Which decoder is used."""
    if request.param == "python":
        monkeypatch.setattr(avro, "_polars", lambda: None)
    return str(request.param)


def written(rows: int = 100, codec: str = "null", sync_interval: int = 16_000, schema: Any = NUMBERS) -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, schema, [{"n": n} for n in range(rows)], codec=codec, sync_interval=sync_interval)
    return out.getvalue()


def opened(data: bytes) -> AvroInput:
    return AvroInput(io.BytesIO(data), "f.avro")


@pytest.mark.parametrize("codec", ["null", "deflate"])
@pytest.mark.parametrize("sync_interval", [1, 16_000])
def test_rows_of_all_blocks_have_their_positions(codec: str, sync_interval: int) -> None:
    file = opened(written(100, codec, sync_interval))
    ((first, batch),) = file.batches(["v", "n"])
    assert (first, list(file.group_rows)) == (0, [100])
    assert batch.to_pylist() == [{"v": None, "n": n} for n in range(100)]


def test_batches_are_bounded() -> None:
    file = opened(written(200_000, sync_interval=1_000_000))
    found = [(first, batch.num_rows, batch.column("n")[0].as_py()) for first, batch in file.batches(["n"])]
    assert [first for first, _, _ in found] == [number for _, _, number in found]
    assert sum(rows for _, rows, _ in found) == 200_000
    assert max(rows for _, rows, _ in found) <= 64 * 1024


def test_rows_without_bytes_are_counted() -> None:
    nothing = {"type": "record", "name": "r", "fields": [{"name": "v", "type": "null"}]}
    file = opened(written(3, schema=nothing))
    assert [batch.to_pylist() for _, batch in file.batches(["v"])] == [[{"v": None}] * 3]


@pytest.mark.parametrize("count", [1, 99, 101, 2**40])
def test_wrong_number_of_records_is_a_format_error(count: int) -> None:
    data = written()
    start = data.index(encode_long(100) + encode_long(136))
    damaged = data[:start] + encode_long(count) + data[start + len(encode_long(100)) :]
    with pytest.raises(FormatError, match="records"):
        list(opened(damaged).batches(["n"]))


def test_cut_file_is_a_format_error_that_names_it() -> None:
    data = written()
    for end in range(0, len(data) - 1, 7):
        with pytest.raises(FormatError, match=r"in f\.avro"):
            list(opened(data[:end]).batches(["n"]))
        with pytest.raises(FormatError, match=r"in f\.avro"):
            _ = opened(data[:end]).group_rows


def test_polars_is_used_only_if_it_is_new_enough(monkeypatch: pytest.MonkeyPatch, decoder: str) -> None:
    if decoder == "python":
        return
    for version, is_used in (("1.29.0", False), ("1.30.0", True), ("2.0.0-beta.1", True)):
        monkeypatch.setattr("polars.__version__", version)
        avro._polars.cache_clear()
        assert (avro._polars() is not None) == is_used
    monkeypatch.setitem(sys.modules, "polars", None)
    avro._polars.cache_clear()
    assert avro._polars() is None
    monkeypatch.undo()
    avro._polars.cache_clear()
