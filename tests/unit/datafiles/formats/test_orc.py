"""ORC files: stripes, names, and what pyarrow does not read."""

import io

import pyarrow as pa
import pytest
from pyarrow import orc

from bergline.datafiles.formats.orc import OrcInput
from bergline.errors import FormatError, UnsupportedError


def opened(rows: pa.Table, **options: object) -> OrcInput:
    return OrcInput(io.BytesIO(written(rows, **options)))


def written(rows: pa.Table, **options: object) -> bytes:
    out = pa.BufferOutputStream()
    orc.write_table(rows, out, **options)
    return out.getvalue().to_pybytes()  # type: ignore[no-any-return]


def test_stripes_are_read_alone_with_their_positions() -> None:
    numbers = pa.table({"a": range(200_000), "b": [str(n * 7919) for n in range(200_000)]})
    file = opened(numbers, stripe_size=64 * 1024, batch_size=10_000, compression="uncompressed")
    assert file.num_groups > 2
    assert sum(file.group_rows) == 200_000
    last = file.num_groups - 1
    for groups in (None, [1], [0, last]):
        for first, batch in file.batches(["a"], groups):
            assert batch.column("a").to_pylist() == list(range(first, first + batch.num_rows))
    chosen = file.group_rows[0] + file.group_rows[last]
    assert sum(batch.num_rows for _, batch in file.batches(["b"], [0, last])) == chosen


def test_name_with_a_dot_is_no_path() -> None:
    file = opened(pa.table({"s": [{"x": 1}], "s.x": [2]}))
    ((_, batch),) = file.batches(["s.x"])
    assert batch.to_pylist() == [{"s.x": 2}]


def test_timestamps_beyond_nanoseconds_are_refused() -> None:
    far = pa.array([253_402_214_400_000_000], pa.int64()).cast(pa.timestamp("us"))
    file = opened(pa.table({"at": far, "n": [1]}))
    with pytest.raises(UnsupportedError, match="timestamps before 1677 or after 2262"):
        list(file.batches(["at"]))
    assert [batch.to_pylist() for _, batch in file.batches(["n"])] == [[{"n": 1}]]


def test_nanoseconds_are_cut_off_downwards() -> None:
    fields = [
        pa.field("us", pa.timestamp("ns")),
        pa.field("ns", pa.timestamp("ns"), metadata={"iceberg.timestamp-unit": "NANOS"}),
    ]
    moments = pa.array([-1, 1_999], pa.int64()).cast(pa.timestamp("ns"))
    ((_, batch),) = opened(pa.table([moments, moments], schema=pa.schema(fields))).batches(["us", "ns"])
    assert [batch.column(name).cast(pa.int64()).to_pylist() for name in ("us", "ns")] == [[-1, 1], [-1, 1_999]]


def test_decimal_on_which_arrow_aborts_is_a_format_error() -> None:
    data = written(pa.table({"d": pa.array([1], pa.int64()).cast(pa.decimal128(21, 2))}), compression="uncompressed")
    damaged = data.replace(b"(\x150\x02", b"(\x290\x02")
    assert damaged != data
    with pytest.raises(FormatError, match=r"at most 38 digits, found decimal\(41, 2\)"):
        OrcInput(io.BytesIO(damaged))


def test_attributes_that_say_nothing_are_a_format_error() -> None:
    field = pa.field("f", pa.binary(), metadata={"iceberg.binary-type": "FIXED"})
    with pytest.raises(FormatError, match="expected attributes of ORC types"):
        opened(pa.table([pa.array([b"x"])], schema=pa.schema([field])))
