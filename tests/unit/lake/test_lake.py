"""Opening lakes and creating tables."""

import inspect
import pickle
import resource
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import bergline
from bergline import Lake, Table
from bergline.errors import (
    AlreadyExistsError,
    FormatError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    UnsupportedError,
)
from support.fixtures.concurrency import run_at_once
from support.fixtures.rows import ORDERS, ids, order_rows


def test_public_names_are_these() -> None:
    assert sorted(bergline.__all__) == [
        "BerglineError",
        "DataFile",
        "Lake",
        "MaintenancePolicy",
        "PartitionStatisticsFile",
        "ProgressBar",
        "Retention",
        "StatisticsFile",
        "Table",
        "connect",
        "maintain",
    ]


def test_public_methods_are_written_out_in_the_class() -> None:
    methods = [name for name, _ in inspect.getmembers(Lake, inspect.isfunction) if not name.startswith("_")]
    text = inspect.getsource(Lake)
    assert {"create_table", "create_view", "publish", "transaction"} <= set(methods)
    assert [name for name in methods if f"    def {name}(" not in text] == []


def test_default_lake_is_in_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with bergline.connect() as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.orders", ORDERS)
    assert (tmp_path / "lake" / "catalog.db").is_file()
    assert table.location == f"file://{tmp_path}/lake/warehouse/db/orders"


def test_reopened_lake_has_what_was_committed(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/my lake/catalog.db"
    with bergline.connect(uri, create=True) as lake:
        lake.create_namespace("db.raw")
        lake.create_table("db.raw.orders", ORDERS).append(order_rows(1, 2))
    with bergline.connect(uri, create=True) as lake:
        assert lake.list_namespaces() == ["db", "db.raw"]
        assert lake.list_tables("db.raw") == ["db.raw.orders"]
        assert ids(lake.load_table("db.raw.orders").scan().to_arrow()) == [1, 2]


def test_memory_lake_needs_no_disk() -> None:
    with bergline.connect("memory:") as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.orders", ORDERS).append(order_rows(1))
        assert table.location == "memory://warehouse/db/orders"
        assert ids(lake.load_table("db.orders").scan().to_arrow()) == [1]


def test_warehouse_may_be_elsewhere(tmp_path: Path) -> None:
    with bergline.connect(f"sqlite:///{tmp_path}/c.db", warehouse=tmp_path / "wh", create=True) as lake:
        lake.create_namespace("db")
        assert lake.create_table("db.t", ORDERS).location == f"file://{tmp_path}/wh/db/t"


@pytest.mark.parametrize(
    ("uri", "hint"),
    [
        ("catalog.db", "for a database file write sqlite:///catalog.db"),
        ("sqlite:///", "a relative path has three slashes, an absolute one four: sqlite:////data/lake/catalog.db"),
        ("sqlite://x", "a relative path has three slashes, an absolute one four: sqlite:////data/lake/catalog.db"),
        ("postgresql+psycopg://host/db", "the driver is always psycopg: leave it out"),
        *((uri, None) for uri in ("mysql://x", "memory:x", ":", "C:\\lake", "s3://", "gs:///")),
    ],
)
def test_bad_uri_says_what_good_ones_look_like(uri: str, hint: str | None) -> None:
    with pytest.raises(InvalidInputError, match=r"expected a catalog like `sqlite:///path/catalog\.db`") as caught:
        bergline.connect(uri, create=True)
    assert str(caught.value).endswith(f"found `{uri}`")
    assert caught.value.hints == (() if hint is None else (hint,))


def test_directory_is_no_database(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=f"path of a database file, found the directory `{tmp_path}`") as no:
        bergline.connect(f"sqlite:///{tmp_path}", create=True)
    assert no.value.hints == (f"a database in it: sqlite:///{tmp_path}/catalog.db",)


def test_tables_and_views_of_all_namespaces_are_listed(lake: Lake) -> None:
    lake.create_namespace("db.raw")
    for name in ("db.raw.b", "db.a"):
        lake.create_table(name, ORDERS)
        lake.create_view(f"{name}_view", "SELECT 1", ORDERS)
    assert lake.list_tables() == ["db.a", "db.raw.b"]
    assert lake.list_views() == ["db.a_view", "db.raw.b_view"]


@pytest.mark.parametrize("given", [order_rows(1), order_rows(1).to_pandas()])
def test_rows_are_no_schema(lake: Lake, given: object) -> None:
    with pytest.raises(InvalidInputError, match=r"expected a pyarrow\.Schema, found") as no:
        lake.create_table("db.t", given)  # type: ignore[arg-type]
    assert "table.schema" in no.value.hints[0]


def test_schema_is_printed_a_line_for_each_column(lake: Lake) -> None:
    columns = pa.schema([pa.field("id", pa.int64(), nullable=False), ("tags", pa.list_(pa.string()))])
    assert str(lake.create_table("db.t", columns).schema) == "1: id: required long\n2: tags: optional list<string>"


def test_name_of_a_catalog_is_not_empty() -> None:
    with pytest.raises(InvalidInputError, match="expected a name for the catalog, found empty text"):
        bergline.connect("memory:", name="")


@pytest.mark.parametrize("long", ["x" * 300, "é" * 200])
def test_name_that_no_directory_can_have_is_refused(lake: Lake, long: str) -> None:
    size = len(long.encode())
    with pytest.raises(InvalidInputError, match=f"expected a name of up to 255 bytes on a disk, found {size} in `"):
        lake.create_table(f"db.{long}", ORDERS)


def test_longest_names_get_directories_of_their_own(lake: Lake, tmp_path: Path) -> None:
    name = f"db.{'x' * 255}"
    first = lake.create_table(name, ORDERS)
    lake.drop_table(name)
    second = lake.create_table(name, ORDERS).append(order_rows(1))
    assert first.location == f"file://{tmp_path}/warehouse/{name.replace('.', '/')}"
    assert second.location.startswith(f"{first.location[:-9]}-")
    assert len(second.location) == len(first.location)


def test_bad_uri_is_shown_without_its_password() -> None:
    with pytest.raises(InvalidInputError, match=r"mysql://me:\*\*\*@host/db"):
        bergline.connect("mysql://me:se:cret@host/db", create=True)


@pytest.mark.parametrize("name", ["orders", "", ".orders", "db.", "db..orders"])
def test_bad_table_names_are_refused(lake: Lake, name: str) -> None:
    with pytest.raises(InvalidInputError, match="expected a table name like"):
        lake.load_table(name)


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        (["day(id)"], "expected date or timestamp.* for `day`, found `long` in column `id`"),
        (
            ["bucket(4, id)", "bucket(8, id)"],
            "`bucket.8, id.`, which would both be named `id_bucket`",
        ),
        (["nope"], "no column `nope`"),
        (["bucket(id)"], "expected a term like"),
        (["region", "region"], "once, found `region` twice"),
        (["f(g(id))"], "expected a term like"),
        (["bucket(0, id)"], "expected a number from 1"),
    ],
)
def test_bad_partitioning_is_refused_and_creates_nothing(lake: Lake, terms: list[str], message: str) -> None:
    with pytest.raises((InvalidInputError, NotFoundError), match=message):
        lake.create_table("db.t", ORDERS, partition_by=terms)
    assert lake.list_tables("db") == []


def test_if_not_exists_returns_what_is_there(lake: Lake, orders: Table) -> None:
    again = lake.create_table("db.orders", pa.schema([("other", pa.int32())]), if_not_exists=True)
    assert again.metadata.table_uuid == orders.metadata.table_uuid


def test_properties_are_text(lake: Lake) -> None:
    with pytest.raises(InvalidInputError, match="expected text for property `a`, found 1"):
        lake.create_table("db.t", ORDERS, properties={"a": 1})  # type: ignore[dict-item]


@pytest.mark.parametrize(("asked", "version"), [({}, 2), ({"format-version": "1"}, 1), ({"format-version": "3"}, 3)])
def test_format_version_is_chosen_at_creation_and_not_stored(lake: Lake, asked: dict[str, str], version: int) -> None:
    metadata = lake.create_table("db.t", ORDERS, properties=asked | {"uuid": "x", "a": "b"}).metadata
    assert metadata.format_version == version
    assert metadata.properties == {"write.parquet.compression-codec": "zstd", "a": "b"}


@pytest.mark.parametrize("version", ["4", "0"])
def test_other_format_versions_are_refused_clearly(lake: Lake, version: str) -> None:
    with pytest.raises(UnsupportedError, match=f"expected a format version of 1 to 3, found {version}"):
        lake.create_table("db.t", ORDERS, properties={"format-version": version})


@pytest.mark.parametrize("key", ["commit.retry.num-retries", "commit.retry.total-timeout-ms", "format-version"])
def test_settings_that_are_no_whole_numbers_are_refused_at_creation(lake: Lake, key: str) -> None:
    with pytest.raises(InvalidInputError, match=f"whole number of 0 or more for property `{key}`, found `-1`"):
        lake.create_table("db.t", ORDERS, properties={key: "-1"})


def test_dropped_table_keeps_its_files(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1))
    lake.drop_table("db.orders")
    assert not lake.table_exists("db.orders")
    assert orders.io.exists(orders.metadata_location)


def test_properties_are_set_and_removed(orders: Table) -> None:
    orders.set_properties({"a": "1", "b": "2"}).set_properties(remove=["a", "nope"])
    assert {"b": "2"}.items() <= orders.refresh().properties.items()
    assert "a" not in orders.properties


def test_column_beside_a_struct_field_of_the_same_full_name_is_refused(lake: Lake) -> None:
    schema = pa.schema([("a", pa.struct([("b", pa.int64())])), ("a.b", pa.int64())])
    with pytest.raises(InvalidInputError, match=r"`a\.b` as a column and inside a struct"):
        lake.create_table("db.t", schema)


@pytest.mark.parametrize(("schema", "partition_by"), [({"id": "int"}, []), (ORDERS, "region")])
def test_arguments_of_the_wrong_kind_are_refused(lake: Lake, schema: object, partition_by: object) -> None:
    with pytest.raises(InvalidInputError, match="expected a"):
        lake.create_table("db.t", schema, partition_by=partition_by)  # type: ignore[arg-type]


def test_more_partitions_than_open_files_are_written(lake: Lake) -> None:
    table = lake.create_table("db.many", pa.schema([("id", pa.int64())]), partition_by=["id"])
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (300, limits[1]))
    try:
        table.append(pa.table({"id": list(range(400))}))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert ids(table.scan().to_arrow()) == list(range(400))


def test_create_if_not_exists_from_many_threads_makes_one_table(tmp_path: Path) -> None:
    def create() -> None:
        with bergline.connect(f"sqlite:///{tmp_path}/c.db", create=True) as lake:
            lake.create_namespace("db", if_not_exists=True)
            uuids.add(lake.create_table("db.t", ORDERS, if_not_exists=True).metadata.table_uuid)

    uuids: set[str] = set()
    run_at_once(*[create] * 8)
    assert len(uuids) == 1


def test_dropped_table_comes_back_by_its_metadata_file(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1))
    lake.drop_table("db.orders")
    again = lake.register_table("db.again", orders.metadata_location)
    assert again.metadata == orders.metadata
    again.append(order_rows(2))
    assert ids(lake.load_table("db.again").scan().to_arrow()) == [1, 2]


def test_what_cannot_be_registered_is_refused_and_kept(lake: Lake, orders: Table, tmp_path: Path) -> None:
    with pytest.raises(AlreadyExistsError, match=r"`db\.orders` exists already"):
        lake.register_table("db.orders", orders.metadata_location)
    with pytest.raises(NotFoundError, match="no file"):
        lake.register_table("db.other", f"file://{tmp_path}/nothing.metadata.json")
    (tmp_path / "bad.metadata.json").write_text("{}")
    with pytest.raises(FormatError, match=r"bad\.metadata\.json"):
        lake.register_table("db.other", str(tmp_path / "bad.metadata.json"))
    with pytest.raises(NotFoundError, match="no namespace `nowhere`"):
        lake.register_table("nowhere.t", orders.metadata_location)
    assert not lake.table_exists("db.other")
    assert orders.refresh().metadata_location


def test_renamed_table_keeps_its_rows_and_its_writers(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1))
    lake.create_namespace("archive")
    lake.rename_table("db.orders", "archive.orders")
    assert not lake.table_exists("db.orders")
    assert ids(lake.load_table("archive.orders").append(order_rows(2)).scan().to_arrow()) == [1, 2]
    with pytest.raises(NotFoundError, match=r"no table `db\.orders`"):
        orders.append(order_rows(3))


def test_table_is_not_renamed_over_another(lake: Lake, orders: Table) -> None:
    lake.create_table("db.items", ORDERS)
    with pytest.raises(AlreadyExistsError, match=r"`db\.items` exists already"):
        lake.rename_table("db.orders", "db.items")
    with pytest.raises(NotFoundError, match=r"no table `db\.nope`"):
        lake.rename_table("db.nope", "db.new")
    with pytest.raises(NotFoundError, match="no namespace `nowhere`"):
        lake.rename_table("db.orders", "nowhere.orders")


def test_namespaces_nest_and_have_properties(lake: Lake) -> None:
    lake.create_namespace("db.raw.eu", {"owner": "us"})
    lake.update_namespace("db.raw.eu", {"comment": "x", "owner": "them"})
    lake.update_namespace("db.raw.eu", remove=["comment", "nope"])
    assert lake.namespace_properties("db.raw.eu") == {"owner": "them"}
    assert lake.namespace_properties("db.raw") == {}
    assert lake.list_namespaces("db") == ["db.raw", "db.raw.eu"]
    assert lake.list_namespaces("db.raw.eu") == []
    with pytest.raises(RefusedError, match="not empty"):
        lake.drop_namespace("db.raw")
    lake.drop_namespace("db.raw.eu")
    assert lake.list_namespaces() == ["db"]


@pytest.mark.parametrize(
    "call",
    [
        lambda lake: lake.namespace_properties("nope"),
        lambda lake: lake.update_namespace("nope", {"a": "1"}),
        lambda lake: lake.list_namespaces("nope"),
        lambda lake: lake.drop_namespace("nope"),
        lambda lake: lake.list_tables("nope"),
        lambda lake: lake.list_views("nope"),
    ],
)
def test_namespace_that_is_not_there_is_not_found(lake: Lake, call: Callable[[Lake], object]) -> None:
    with pytest.raises(NotFoundError, match="no namespace `nope`"):
        call(lake)


def test_tables_of_a_namespace_with_a_location_go_there(lake: Lake, tmp_path: Path) -> None:
    lake.create_namespace("far", {"location": f"file://{tmp_path}/far away/"})
    assert lake.create_table("far.t", ORDERS).location == f"file://{tmp_path}/far away/t"


def test_unregistered_table_comes_back_in_another_catalog(lake: Lake, orders: Table, tmp_path: Path) -> None:
    orders.append(order_rows(1))
    location = lake.unregister_table("db.orders")
    assert location == orders.metadata_location
    assert not lake.table_exists("db.orders")
    with bergline.connect(f"sqlite:///{tmp_path}/other.db", create=True) as other:
        other.create_namespace("here")
        assert ids(other.register_table("here.orders", location).append(order_rows(2)).scan().to_arrow()) == [1, 2]


def test_table_made_anew_has_a_directory_of_its_own(lake: Lake, orders: Table) -> None:
    lake.rename_table("db.orders", "db.old")
    again = lake.create_table("db.orders", ORDERS).append(order_rows(2))
    assert again.location.startswith(f"{orders.location}-")
    lake.drop_table("db.orders")
    third = lake.create_table("db.orders", ORDERS)
    assert len({orders.location, again.location, third.location}) == 3


def test_two_catalogs_on_one_warehouse_keep_their_tables_apart(tmp_path: Path) -> None:
    warehouse = tmp_path / "shared"
    with (
        bergline.connect(f"sqlite:///{tmp_path}/a.db", warehouse=warehouse, create=True) as one,
        bergline.connect(f"sqlite:///{tmp_path}/b.db", warehouse=warehouse, create=True) as two,
    ):
        tables = []
        for number, lake in enumerate((one, two)):
            lake.create_namespace("db")
            tables.append(lake.create_table("db.orders", ORDERS).append(order_rows(number)))
        assert tables[0].location != tables[1].location
        with pytest.raises(RefusedError, match=r"cannot create `db\.copy` at .*: metadata of another table is there"):
            two.create_table("db.copy", ORDERS, location=tables[0].location)
        assert two.list_tables("db") == ["db.orders"]
        two.purge_table("db.orders")
        assert ids(one.load_table("db.orders").scan().to_arrow()) == [0]


def test_existing_table_is_told_before_its_location(lake: Lake, orders: Table) -> None:
    with pytest.raises(AlreadyExistsError, match=r"table `db\.orders` exists already"):
        lake.create_table("db.orders", ORDERS, location=orders.location)
    again = lake.create_table("db.orders", ORDERS, location=orders.location, if_not_exists=True)
    assert again.metadata == orders.metadata


@pytest.mark.parametrize(
    ("uri", "warehouse", "message"),
    [
        ("sqlite:///a\0b", None, "expected no null character in the catalog's address"),
        ("sqlite:///:memory:", None, "expected the path of a database file, found `sqlite:///:memory:`"),
        ("version-hint:s3://", None, "expected a location like `s3://bucket/key`"),
        ("file:///etc/hostname", None, "expected a directory for a version-hint catalog, found another file"),
        ("memory:", "s3:x", "expected a warehouse like `s3://bucket/path`, found `s3:x`"),
    ],
)
def test_places_that_cannot_be_are_refused(uri: str, warehouse: str | None, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        bergline.connect(uri, warehouse=warehouse, create=True)


def test_namespace_with_a_location_that_depends_on_the_process_is_refused(lake: Lake) -> None:
    for refused in (
        lambda: lake.create_namespace("near", {"location": "here"}),
        lambda: lake.update_namespace("db", {"location": "here"}),
    ):
        with pytest.raises(InvalidInputError, match=r"expected an absolute location for namespace `.*`, found 'here'"):
            refused()
    assert not lake.namespace_exists("near")


def test_lakes_that_were_connected_in_the_same_way_are_the_same(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    with (
        bergline.connect(uri, create=True) as lake,
        bergline.connect(uri) as again,
        bergline.connect(uri, name="x") as other,
    ):
        assert lake.same_as(again)
        assert not lake.same_as(other)
    with bergline.connect("memory:") as one, bergline.connect("memory:") as two:
        assert one.same_as(one)
        assert not one.same_as(two)


def test_pickled_lake_connects_to_the_same_catalog_wherever_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with bergline.connect("sqlite:///catalog.db", warehouse="files", create=True) as lake:
        lake.create_namespace("db")
        lake.create_table("db.orders", ORDERS).append(order_rows(1))
        pickled = pickle.dumps(lake)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pickle.loads(pickled) as copied:  # noqa: S301
        assert copied.name == "lake"
        assert ids(copied.load_table("db.orders").append(order_rows(2)).scan().to_arrow()) == [1, 2]
        assert (tmp_path / "files/db/orders").is_dir()
    (tmp_path / "catalog.db").unlink()
    with pytest.raises(NotFoundError, match="no catalog at"):
        pickle.loads(pickled)  # noqa: S301
