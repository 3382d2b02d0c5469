"""Values of table properties: refused where they are set, and named where another writer's cannot be used."""

from pathlib import Path

import pyarrow as pa
import pytest

import bergline
from bergline import Lake, Table
from bergline.errors import BerglineError, FormatError, InvalidInputError, UnsupportedError
from bergline.format.metadata.updates import SetProperties
from bergline.table.commits.operation import Change, MetadataOperation
from bergline.table.evolution.properties import KNOWN_PROPERTIES, check_properties
from support.fixtures.rows import ORDERS, order_rows
from support.paths import ROOT

pytestmark = pytest.mark.long

WRONG = [
    ("commit.manifest.target-size-bytes", "0"),
    ("commit.retry.num-retries", "-1"),
    ("commit.retry.max-wait-ms", "soon"),
    ("commit.retry.total-timeout-ms", "9999999999"),
    ("commit.status-check.num-retries", " 1"),
    ("format-version", "two"),
    ("gc.enabled", "no"),
    ("history.expire.max-snapshot-age-ms", "5 days"),
    ("history.expire.min-snapshots-to-keep", "0"),
    ("history.expire.max-ref-age-ms", "9" * 19),
    ("schema.name-mapping.default", "{"),
    ("schema.name-mapping.default", '[{"field-id": 1}, {"field-id": 1}]'),
    ("write.data.path", "data"),
    ("write.data.path", "../data"),
    ("write.metadata.path", "file:data"),
    ("write.delete.parquet.compression-codec", "lzma"),
    ("write.delete.parquet.page-size-bytes", "-5"),
    ("write.metadata.compression-codec", "zip"),
    ("write.metadata.metrics.default", "trunc"),
    ("write.metadata.metrics.default", "truncate(0)"),
    ("write.metadata.metrics.column.amount", "all"),
    ("write.metadata.metrics.column.nope", "full"),
    ("write.metadata.metrics.max-inferred-column-defaults", "-1"),
    ("write.metadata.previous-versions-max", "0"),
    ("write.parquet.compression-codec", "lzma"),
    ("write.parquet.compression-codec", ""),
    ("write.parquet.compression-level", "23"),
    ("write.parquet.compression-level", "0"),
    ("write.parquet.compression-level", "fast"),
    ("write.delete.parquet.compression-level", "99999999999"),
    ("write.parquet.dict-size-bytes", "1e6"),
    ("write.parquet.row-group-size-bytes", "0"),
    ("write.summary.partition-limit", "many"),
    ("write.target-file-size-bytes", "512MB"),
    ("write.wap.enabled", "1"),
    ("write.distribution-mode", "round robin"),
    ("write.spark.fanout.enabled", "perhaps"),
    ("write.spark.accept-any-schema", "perhaps"),
]
# what is needed for the commit that sets it, or for every read
AT_ONCE = {"write.metadata.compression-codec", "schema.name-mapping.default"}


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_wrong_value_is_refused_where_it_is_set(lake: Lake, orders: Table, name: str, value: str) -> None:
    with pytest.raises(InvalidInputError, match=f"{name}"):
        orders.set_properties({name: value})
    with pytest.raises(InvalidInputError, match=f"{name}"):
        lake.create_table("db.other", pa.schema([("amount", pa.int64())]), properties={name: value})
    assert not lake.table_exists("db.other")
    assert orders.refresh().properties.get(name) != value


def test_right_values_are_taken(orders: Table) -> None:
    right = {
        "commit.retry.num-retries": "0",
        "gc.enabled": "FALSE",
        "history.expire.max-ref-age-ms": str(2**63 - 1),
        "schema.name-mapping.default": '[{"field-id": 1, "names": ["id"]}]',
        "write.data.path": "/data/elsewhere",
        "write.metadata.path": "s3://bucket/path",
        "write.format.default": "Parquet",
        "write.metadata.metrics.default": "truncate(4)",
        "write.metadata.metrics.column.amount": "none",
        "write.parquet.compression-codec": "GZIP",
        "write.parquet.compression-level": "9",
        "write.spark.advisory-partition-size-bytes": "perhaps",
        "write.distribution-mode": "HASH",
        "owner": "",
    }
    check_properties(right, orders.schema)


def test_only_parquet_is_written(lake: Lake, orders: Table) -> None:
    for name in ("write.format.default", "write.delete.format.default"):
        with pytest.raises(UnsupportedError, match=f"expected parquet for property `{name}`, found `orc`"):
            orders.set_properties({name: "orc"})
        with pytest.raises(UnsupportedError, match=name):
            lake.create_table("db.other", orders.schema, properties={name: "avro"})


def test_level_is_checked_with_the_codec_that_will_be(orders: Table) -> None:
    orders.set_properties({"write.parquet.compression-level": "22"})
    with pytest.raises(InvalidInputError, match="expected a level of 0 to 9 of gzip for property `write"):
        orders.set_properties({"write.parquet.compression-codec": "gzip"})
    with pytest.raises(InvalidInputError, match="of 0 to 11 of brotli for property `write"):
        orders.set_properties({"write.delete.parquet.compression-codec": "brotli"})
    orders.set_properties({"write.parquet.compression-codec": "gzip"}, remove=["write.parquet.compression-level"])
    orders.set_properties({"write.parquet.compression-codec": "snappy", "write.parquet.compression-level": "50"})


def test_property_is_set_or_removed(orders: Table) -> None:
    with pytest.raises(InvalidInputError, match="expected property `a` to be set or removed, found both"):
        orders.set_properties({"a": "b"}, remove=["a"])


@pytest.mark.parametrize(("name", "value"), [case for case in WRONG if case[0] not in {"format-version", *AT_ONCE}])
def test_values_of_other_writers_hinder_only_what_needs_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, orders: Table, name: str, value: str
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    orders.append(order_rows(1))
    _set_by_another(orders, name, value)
    assert orders.refresh().scan().to_arrow().num_rows == 1
    try:
        orders.append(order_rows(2))
    except BerglineError as error:
        assert name in str(error)  # noqa: PT017  (some are not needed here, and then nothing is raised)
    orders.set_properties(remove=[name]).append(order_rows(3))


def test_codec_of_another_writer_is_named(orders: Table) -> None:
    _set_by_another(orders, "write.parquet.compression-codec", "lzma")
    with pytest.raises(InvalidInputError, match=r"a codec of zstd, .* for property `write.parquet.compression-codec`"):
        orders.append(order_rows(1))


def test_name_mapping_of_another_writer_is_named(orders: Table) -> None:
    _set_by_another(orders.append(order_rows(1)), "schema.name-mapping.default", "{")
    with pytest.raises(FormatError, match=r"schema\.name-mapping\.default"):
        orders.scan().to_arrow()


@pytest.mark.parametrize("name", ["write.data.path", "write.metadata.path"])
def test_relative_path_of_another_writer_becomes_absolute_in_new_files(
    tmp_path: Path, orders: Table, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    there, elsewhere = tmp_path / "there", tmp_path / "elsewhere"
    there.mkdir()
    elsewhere.mkdir()
    monkeypatch.chdir(there)
    _set_by_another(orders, name, "new")
    orders.append(order_rows(1))
    assert any((there / "new").rglob("*.*"))
    monkeypatch.chdir(elsewhere)
    with bergline.connect(f"sqlite:///{tmp_path}/catalog.db", create=True) as other:
        found = other.load_table("db.orders")
        assert found.scan().to_arrow()["id"].to_pylist() == [1]
        (planned,) = found.scan().plan().files
        assert planned.file.file_path.startswith("file:///")
        assert found.metadata_location.startswith("file:///")


def test_location_is_absolute_wherever_it_was_given(
    tmp_path: Path, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table = lake.create_table("db.near", ORDERS, location="near/by")
    assert table.location == f"file://{tmp_path}/near/by"


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("wirte.merge.mode", "write.merge.mode"),
        ("write.target-file-size-byte", "write.target-file-size-bytes"),
        ("team", None),
        ("write.parquet.page-row-limit", None),  # Java's
        ("commit.status-check.total-timeout-ms", None),
        ("write.avro.compression-codec", None),
    ],
)
def test_a_misspelled_property_is_set_with_a_warning(
    lake: Lake, caplog: pytest.LogCaptureFixture, name: str, meant: str | None
) -> None:
    table = lake.create_table("db.warned", ORDERS, properties={name: "1"})
    table.set_properties({name: "2"})
    assert table.properties[name] == "2"
    warned = f"property `{name}` is set, but nothing here reads it: did you mean `{meant}`?"
    assert [record.getMessage() for record in caplog.records] == ([warned] * 2 if meant else [])


def test_every_known_property_is_documented() -> None:
    page = (ROOT / "docs/reference/properties.md").read_text()
    undocumented = [name for name in KNOWN_PROPERTIES if not _is_documented(name, page)]
    assert not undocumented


def _is_documented(name: str, page: str) -> bool:
    if name.startswith("write.delete.parquet."):
        return "`write.delete.` + " in page
    return f"`{name}`" in page or (f"`.{name.rpartition('.')[2]}`" in page and name.rpartition(".")[0] in page)


def _set_by_another(table: Table, name: str, value: str) -> None:
    table.commit(MetadataOperation(lambda _: Change((SetProperties({name: value}),))))
