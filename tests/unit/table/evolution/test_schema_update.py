"""Schema changes in one block are one commit, checked as they are made, and merged with what others change."""

import datetime as dt
import uuid
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import bergline
from bergline import Lake, Table
from bergline.errors import AlreadyExistsError, BerglineError, ConflictError, InvalidInputError, NotFoundError
from bergline.format.metadata.updates import SetProperties
from bergline.format.schema.name_mapping import NAME_MAPPING_PROPERTY, parse_name_mapping
from bergline.format.types.types import LONG
from bergline.table.commits.operation import Change, MetadataOperation
from bergline.table.evolution.schema_update import SchemaUpdate
from support.fixtures.competing_writers import overtaken
from support.fixtures.concurrency import run_for_each
from support.fixtures.rows import order_rows


@pytest.fixture
def lake() -> Iterator[Lake]:
    with bergline.connect("memory:") as opened:
        opened.create_namespace("db")
        yield opened


@pytest.fixture
def v3(lake: Lake) -> Table:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("n", pa.int32()), ("d", pa.date32())])
    return lake.create_table("db.v3", schema, properties={"format-version": "3"})


def columns(table: Table) -> list[tuple[int, str, str]]:
    return [(f.id, f.name, str(f.type)) for f in table.schema.fields]


def test_block_is_one_commit(orders: Table) -> None:
    log = len(orders.metadata.metadata_log)
    with orders.update_schema() as schema:
        schema.add_column("tags", "list<string>", doc="words", after="id")
        schema.rename_column("amount", "price").move_column("price", first=True)
        schema.drop_column("region")
        assert [f.name for f in schema.schema.fields] == ["price", "id", "tags"]
        assert orders.schema.schema_id == 0
    assert columns(orders) == [(2, "price", "double"), (1, "id", "long"), (4, "tags", "list<string>")]
    assert orders.schema.find("tags").doc == "words"
    assert orders.metadata.last_column_id == 5
    assert orders.schema.schema_id == 1
    assert len(orders.metadata.metadata_log) == log + 1


def test_types_are_words_format_types_or_arrow_types(orders: Table) -> None:
    with orders.update_schema() as schema:
        schema.add_column("a", "decimal(9,2)").add_column("b", LONG).add_column("c", pa.list_(pa.int32()))
        schema.add_column("d", pa.struct([("x", pa.float32())])).add_column("d.y", "map<string, long>")
    assert [str(f.type) for f in orders.schema.fields[3:]] == [
        "decimal(9, 2)",
        "long",
        "list<int>",
        "struct<x: float, y: map<string, long>>",
    ]
    assert sorted(orders.schema.ids) == list(range(1, orders.metadata.last_column_id + 1))


@pytest.mark.parametrize("type_", ["number", 5, None, pa.month_day_nano_interval()])
def test_other_types_are_refused(orders: Table, type_: Any) -> None:
    with orders.update_schema() as schema, pytest.raises(BerglineError, match="expected a type"):
        schema.add_column("x", type_)
    assert len(orders.metadata.schemas) == 1


def test_every_attribute_of_a_column_can_be_changed(v3: Table) -> None:
    with v3.update_schema() as schema:
        schema.set_type("n", "long").set_doc("n", "how many").set_default("n", 7).make_optional("id")
        schema.set_type("d", "timestamp")
    n = v3.schema.find("n")
    assert (n.type, n.doc, n.write_default, n.initial_default) == (LONG, "how many", 7, None)
    assert str(v3.schema.find("d").type) == "timestamp"
    assert not v3.schema.find("id").required
    with v3.update_schema(allow_incompatible=True) as schema:
        schema.require_column("id").set_identifier_fields(["id"])
    assert v3.schema.identifier_field_ids == (1,)
    with v3.update_schema() as schema:
        schema.set_identifier_fields([]).drop_column("id")
    assert "id" not in v3.schema.names


@pytest.mark.parametrize(
    ("type_", "value", "wire"),
    [
        ("date", dt.date(2020, 1, 2), "2020-01-02"),
        ("timestamptz", dt.datetime(2020, 1, 2, 1, tzinfo=dt.timezone(dt.timedelta(hours=1))), "2020-01-02T00:00:00"),
        ("time", dt.time(1, 2, 3), "01:02:03"),
        ("decimal(9, 2)", Decimal("1.5"), "1.50"),
        ("string", "x", "x"),
        ("binary", b"\x01", "01"),
        ("uuid", uuid.UUID(int=1), str(uuid.UUID(int=1))),
        ("boolean", True, True),
        ("double", 1.5, 1.5),
        ("int", 7, 7),
        ("list<int>", [1], [1]),
        ("struct<a: int>", {}, {}),
    ],
)
def test_defaults_are_python_values(v3: Table, type_: str, value: Any, wire: Any) -> None:
    with v3.update_schema() as schema:
        schema.add_column("x", type_, default=value, required=True)
    field = v3.schema.find("x")
    assert field.required
    if isinstance(wire, str):
        assert str(field.initial_default).startswith(wire)
    else:
        assert field.initial_default == wire
    assert field.write_default == field.initial_default


@pytest.mark.parametrize(("type_", "value"), [("int", "7"), ("int", 2**40), ("date", "x"), ("uuid", 5), ("variant", 1)])
def test_defaults_must_fit(v3: Table, type_: str, value: Any) -> None:
    with v3.update_schema() as schema, pytest.raises(InvalidInputError, match=r"default|value"):
        schema.add_column("x", type_, default=value)


def test_rows_before_and_after_a_change_read_together(v3: Table) -> None:
    v3.append(pa.table({"id": [1], "n": pa.array([1], pa.int32())}))
    with v3.update_schema() as schema:
        schema.rename_column("n", "count").set_type("count", "long").add_column("k", "string", default="old")
    v3.append(pa.table({"id": [2], "count": [2**40], "k": ["new"]}))
    with v3.update_schema() as schema:
        schema.drop_column("d").add_column("d", "string").move_column("k", before="count")
    rows = sorted(v3.scan().to_arrow().to_pylist(), key=lambda r: r["id"])
    assert rows == [
        {"id": 1, "k": "old", "count": 1, "d": None},
        {"id": 2, "k": "new", "count": 2**40, "d": None},
    ]


def test_what_is_wrong_is_said_where_it_is_asked_for(orders: Table) -> None:
    with orders.update_schema() as schema:
        with pytest.raises(AlreadyExistsError, match="`region` exists already"):
            schema.add_column("region", "string")
        with pytest.raises(NotFoundError, match="no column `nope`"):
            schema.drop_column("nope")
        for path in ("", ".x", "x.", "."):
            with pytest.raises((InvalidInputError, NotFoundError)):
                schema.add_column(path, "int")
        with pytest.raises(InvalidInputError, match="from `string` to `long`"):
            schema.set_type("region", "long")
        with pytest.raises(InvalidInputError, match="cannot make column `region` required"):
            schema.require_column("region")
        with pytest.raises(InvalidInputError, match="older rows have none"):
            schema.add_column("x", "int", required=True)
        with pytest.raises(InvalidInputError, match="found 2 of them"):
            schema.add_column("x", "int", first=True, after="id")
        with pytest.raises(InvalidInputError, match="found none of them"):
            schema.move_column("id")
        with pytest.raises(InvalidInputError, match="the name of a column"):
            schema.drop_column(3)  # type: ignore[arg-type]
    assert len(orders.metadata.schemas) == 1


@pytest.mark.parametrize("name", ["_file", "_pos", "_partition"])
def test_reserved_names_are_not_for_columns(orders: Table, name: str) -> None:
    with pytest.raises(InvalidInputError, match="not reserved"), orders.update_schema() as schema:
        schema.add_column(name, "string")
    with pytest.raises(InvalidInputError, match="not reserved"), orders.update_schema() as schema:
        schema.rename_column("region", name)


def test_types_and_defaults_must_be_of_the_format_version(orders: Table) -> None:
    with pytest.raises(InvalidInputError, match="format version 2"), orders.update_schema() as schema:
        schema.add_column("x", "timestamp_ns")
    with pytest.raises(InvalidInputError, match="no default in format version 2"), orders.update_schema() as schema:
        schema.add_column("x", "int", default=1)


def test_columns_that_partitions_or_the_sort_order_need_stay(lake: Lake) -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("c", pa.int64())])
    table = lake.create_table("db.t", schema, partition_by=["bucket(4, a)"]).replace_sort_order(["b"])
    with (
        pytest.raises(InvalidInputError, match="partition field `a_bucket` needs"),
        table.update_schema() as update,
    ):
        update.drop_column("a")
    with pytest.raises(InvalidInputError, match="`b`: the sort order needs it"), table.update_schema() as update:
        update.drop_column("b")
    with pytest.raises(InvalidInputError, match="found the column `a_bucket`"), table.update_schema() as update:
        update.rename_column("c", "a_bucket")
    with table.update_spec() as spec:
        spec.remove_field("a_bucket")
    table.replace_sort_order([])
    with table.update_schema() as update:
        update.drop_column("a").drop_column("b")
    assert list(table.schema.names) == ["c"]


def test_block_that_fails_or_changes_nothing_commits_nothing(orders: Table) -> None:
    before = orders.metadata_location
    with pytest.raises(ZeroDivisionError), orders.update_schema() as schema:
        schema.add_column("x", "int").add_column("y", "int", doc=f"{1 / 0}")
    with orders.update_schema():
        pass
    with orders.update_schema() as schema:
        schema.rename_column("region", "r").rename_column("r", "region").set_type("amount", "double")
    assert orders.refresh().metadata_location == before


def test_changes_outside_the_block_are_refused(orders: Table) -> None:
    update = orders.update_schema()
    with pytest.raises(InvalidInputError, match="inside a `with` block"):
        update.add_column("x", "int")
    with update:
        update.add_column("y", "int")
    with pytest.raises(InvalidInputError, match="inside a `with` block"):
        update.add_column("z", "int")
    assert [f.name for f in orders.schema.fields] == ["id", "amount", "region", "y"]


def test_schema_that_was_there_before_has_its_old_id(orders: Table) -> None:
    with orders.update_schema() as schema:
        schema.rename_column("region", "r")
    with orders.update_schema() as schema:
        schema.rename_column("r", "region")
    assert orders.metadata.current_schema_id == 0
    assert len(orders.metadata.schemas) == 2


def test_union_adds_widens_and_drops_nothing(lake: Lake) -> None:
    old = pa.struct([("x", pa.int32())])
    fields = [
        ("id", pa.int32()),
        ("p", old),
        ("ps", pa.list_(old)),
        ("m", pa.map_(pa.string(), old)),
        ("z", pa.int64()),
    ]
    table = lake.create_table("db.t", pa.schema([pa.field("k", pa.int32(), nullable=False), *fields]))
    new = pa.struct([("x", pa.int64()), ("y", pa.string())])
    wanted = [
        ("top", pa.string()),
        ("id", pa.int64()),
        ("p", new),
        ("ps", pa.list_(new)),
        ("m", pa.map_(pa.string(), new)),
    ]
    with table.update_schema() as schema:
        schema.union_by_name(pa.schema([*wanted, ("z", pa.int32()), ("k", pa.int32())]))
    assert [f"{f.name}: {f.type}" for f in table.schema.fields] == [
        "k: int",
        "id: long",
        "p: struct<x: long, y: string>",
        "ps: list<struct<x: long, y: string>>",
        "m: map<string, struct<x: long, y: string>>",
        "z: long",
        "top: string",
    ]
    assert not table.schema.find("k").required
    before = table.metadata_location
    with table.update_schema() as schema:
        schema.union_by_name(table.schema)
    assert table.refresh().metadata_location == before
    with table.update_schema() as schema, pytest.raises(InvalidInputError, match="cannot change column `p`"):
        schema.union_by_name(pa.schema([("p", pa.int64())]))


def test_names_with_dots_are_told_by_the_parts_of_a_path(lake: Lake) -> None:
    table = lake.create_table("db.t", pa.schema([("id", pa.int64()), ("p", pa.struct([("x", pa.int32())]))]))
    with table.update_schema() as schema:
        schema.add_column(("p.q",), "int", after="id").add_column(("p", "u.v"), "string").add_column("p.y", "int")
        schema.union_by_name(pa.schema([("a.b", pa.string()), ("p", pa.struct([("c.d", pa.string())]))]))
        schema.drop_column("p.x").set_type("p.q", "long").rename_column("p.u.v", "w.w").set_doc("a.b", "words")
    assert [f"{f.name}: {f.type}" for f in table.schema.fields] == [
        "id: long",
        "p.q: long",
        "p: struct<w.w: string, y: int, c.d: string>",
        "a.b: string",
    ]
    for path in (("p", "q"), "p.q", ("p.y",)):
        with pytest.raises((AlreadyExistsError, InvalidInputError)), table.update_schema() as schema:
            schema.add_column(path, "int")
    for wrong in ((), ("",), ("p", ""), ("id", 1)):
        with pytest.raises(InvalidInputError), table.update_schema() as schema:
            schema.add_column(wrong, "int")
    with table.update_schema() as schema:
        schema.drop_column("p")
    assert table.schema.find("p.q").type == LONG


def test_name_mapping_and_column_properties_follow(orders: Table) -> None:
    mapping = '[{"field-id":1,"names":["id"]},{"field-id":2,"names":["amount"]},{"field-id":3,"names":["region"]}]'
    metrics = "write.metadata.metrics.column."
    bloom = "write.parquet.bloom-filter-enabled.column."
    orders.set_properties(
        {
            NAME_MAPPING_PROPERTY: mapping,
            f"{metrics}amount": "full",
            f"{metrics}region": "none",
            f"{bloom}amount": "true",
        }
    )
    with orders.update_schema() as schema:
        schema.rename_column("amount", "price").drop_column("region").add_column("x", "int")
    found = parse_name_mapping(orders.properties[NAME_MAPPING_PROPERTY])
    assert [(f.field_id, f.names) for f in found.fields] == [
        (1, ("id",)),
        (2, ("amount", "price")),
        (3, ("region",)),
        (4, ("x",)),
    ]
    kept = {k: v for k, v in orders.properties.items() if ".column." in k}
    assert kept == {f"{metrics}price": "full", f"{bloom}price": "true"}


def test_properties_of_swapped_names_are_swapped(orders: Table) -> None:
    prefix = "write.metadata.metrics.column."
    orders.set_properties({f"{prefix}amount": "full", f"{prefix}region": "none"})
    with orders.update_schema() as schema:
        schema.rename_column("amount", "x").rename_column("region", "amount").rename_column("x", "region")
    assert {k: v for k, v in orders.properties.items() if k.startswith(prefix)} == {
        f"{prefix}region": "full",
        f"{prefix}amount": "none",
    }


def test_name_mapping_that_cannot_be_read_is_left_alone(orders: Table, caplog: pytest.LogCaptureFixture) -> None:
    orders.commit(MetadataOperation(lambda _: Change((SetProperties({NAME_MAPPING_PROPERTY: "{"}),))))
    with orders.update_schema() as schema:
        schema.add_column("x", "int")
    assert orders.properties[NAME_MAPPING_PROPERTY] == "{"
    assert "name mapping" in caplog.text


# with others at the same time


def change(table: Table, wanted: Callable[[SchemaUpdate], object]) -> Callable[[], None]:
    def act() -> None:
        with table.update_schema() as schema:
            wanted(schema)

    return act


def test_columns_that_others_add_meanwhile_stay(lake: Lake, orders: Table) -> None:
    late = overtaken(
        lake,
        change(orders, lambda s: s.add_column("theirs", "struct<a: int, b: int>", first=True)),
        lambda: orders.set_properties({"owner": "them"}),
        lambda: orders.append(order_rows(1)),
    ).load_table("db.orders")
    with late.update_schema() as schema:
        schema.add_column("mine", "list<int>").rename_column("region", "area").add_column("mine2", "int", after="mine")
        schema.set_doc("mine2", "second").set_type("mine2", "long")
    assert columns(late) == [
        (4, "theirs", "struct<a: int, b: int>"),
        (1, "id", "long"),
        (2, "amount", "double"),
        (3, "area", "string"),
        (7, "mine", "list<int>"),
        (9, "mine2", "long"),
    ]
    assert late.metadata.last_column_id == 9
    assert late.properties["owner"] == "them"
    assert late.current_snapshot is not None


def test_changes_of_other_attributes_of_one_column_merge(lake: Lake, orders: Table) -> None:
    late = overtaken(lake, change(orders, lambda s: s.set_doc("region", "where").move_column("region", first=True)))
    table = late.load_table("db.orders")
    with table.update_schema() as schema:
        schema.rename_column("region", "area")
    field = table.schema.fields[0]
    assert (field.id, field.name, field.doc) == (3, "area", "where")


Wish = Callable[[SchemaUpdate], object]
LONG_U = pa.schema([("u", pa.int64())])


def widen(type_: str) -> Wish:
    return lambda s: s.set_type("n", type_)


@pytest.mark.parametrize(
    ("theirs", "mine", "message"),
    [
        (lambda s: s.add_column("x", "int"), lambda s: s.add_column("x", "int"), "column `x` exists already"),
        (lambda s: s.drop_column("region"), lambda s: s.rename_column("region", "r"), "`region` was dropped"),
        (lambda s: s.drop_column("region"), lambda s: s.drop_column("region"), "`region` was dropped"),
        (lambda s: s.rename_column("region", "r"), lambda s: s.drop_column("region"), "renamed to `r`"),
        (
            lambda s: s.drop_column("region").add_column("region", "string"),
            lambda s: s.drop_column("region"),
            "`region` was dropped",
        ),
        (
            lambda s: s.rename_column("region", "r").rename_column("amount", "region"),
            lambda s: s.set_doc("region", "x"),
            "renamed to `r`",
        ),
        (lambda s: s.set_doc("region", "x"), lambda s: s.set_doc("region", "y"), "`region` got another comment"),
        (widen("decimal(12, 2)"), widen("decimal(15, 2)"), "`n` got another type"),
        (widen("decimal(15, 2)"), widen("decimal(12, 2)"), "types only widen"),
        (
            lambda s: s.set_identifier_fields([]),
            lambda s: s.set_identifier_fields(["n"]),
            "the identifier fields were changed",
        ),
        (
            lambda s: s.rename_column("region", "r"),
            lambda s: s.add_column("x", "int", after="region"),
            "no column `region`",
        ),
        (lambda s: s.drop_column("p"), lambda s: s.add_column("p.z", "int"), "`p` was dropped"),
        (
            lambda s: s.add_column("u", "string"),
            lambda s: s.union_by_name(LONG_U),
            "column `u`",
        ),
    ],
)
def test_what_conflicts_in_meaning_is_a_conflict_that_says_what_happened(
    lake: Lake, theirs: Wish, mine: Wish, message: str
) -> None:
    fields = [("region", pa.string()), ("amount", pa.string()), ("p", pa.struct([("x", pa.int32())]))]
    first = [pa.field("id", pa.int64(), nullable=False), pa.field("n", pa.decimal128(9, 2), nullable=False)]
    table = lake.create_table("db.t", pa.schema([*first, *fields]))
    with table.update_schema() as schema:
        schema.set_identifier_fields(["id"])
    late = overtaken(lake, change(table, theirs)).load_table("db.t")
    with pytest.raises(ConflictError, match=message) as caught, late.update_schema() as schema:
        mine(schema)
    assert "its schema changed first, at 20" in str(caught.value)
    winners = table.refresh().schema
    assert late.refresh().schema == winners


@pytest.mark.parametrize(
    "same",
    [
        lambda s: s.set_doc("region", "x"),
        lambda s: s.set_type("n", "long"),
        lambda s: s.make_optional("id"),
        lambda s: s.union_by_name(pa.schema([("u", pa.string())])),
        lambda s: s.move_column("region", first=True),
    ],
)
def test_wishes_that_others_fulfilled_are_no_conflict(lake: Lake, same: Wish) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("n", pa.int32()), ("region", pa.string())])
    table = lake.create_table("db.t", schema)
    late = overtaken(lake, change(table, same)).load_table("db.t")
    with late.update_schema() as update:
        same(update)
    assert late.metadata_location == table.refresh().metadata_location


def test_default_for_a_type_that_changed_meanwhile_is_a_conflict(lake: Lake, v3: Table) -> None:
    late = overtaken(lake, change(v3, lambda s: s.set_type("d", "timestamp"))).load_table("db.v3")
    with pytest.raises(ConflictError, match="`d` got another type or default"), late.update_schema() as schema:
        schema.set_default("d", dt.date(2020, 1, 1))
    assert v3.refresh().schema.find("d").write_default is None


def test_stale_handle_changes_the_column_that_it_showed_or_none(lake: Lake, orders: Table) -> None:
    stale = lake.load_table("db.orders")
    with orders.update_schema() as schema:
        schema.rename_column("region", "old").rename_column("amount", "region").add_column("x", "int")
    with pytest.raises(ConflictError, match="`region` was renamed to `old`"), stale.update_schema() as schema:
        schema.drop_column("region")
    with stale.refresh().update_schema() as schema:
        schema.drop_column("region")
    assert list(stale.schema.names) == ["id", "old", "x"]


def test_columns_of_a_transaction_merge_with_those_of_others(lake: Lake, orders: Table) -> None:
    others = change(orders, lambda s: s.add_column("theirs", "struct<a: int>"))
    late = overtaken(lake, others, lambda: orders.append(order_rows(1))).load_table("db.orders")
    with late.transaction() as table:
        with table.update_schema() as schema:
            schema.add_column("x", "list<int>").rename_column("region", "area")
        with table.update_schema() as schema:
            schema.rename_column("x", "mine").set_doc("mine", "ours").set_doc("area", "where")
        with table.update_schema() as schema:
            schema.add_column("day", "date")
        with table.update_spec() as spec:
            spec.add_field("month(day)").add_field("area")
        with table.update_spec() as spec:
            spec.remove_field("day_month").rename_field("area", "region")
        table.replace_sort_order(["day"]).set_properties({"a": "b"})
    assert columns(late)[2:] == [
        (3, "area", "string"),
        (4, "theirs", "struct<a: int>"),
        (6, "mine", "list<int>"),
        (8, "day", "date"),
    ]
    assert [f.doc for f in late.schema.fields[2:5]] == ["where", None, "ours"]
    assert [(f.name, f.source_id) for f in late.spec.fields] == [("region", 3)]
    assert [f.source_id for f in late.metadata.sort_order.fields] == [8]
    assert late.current_snapshot is not None


def test_transaction_that_lost_its_column_is_a_conflict(lake: Lake, orders: Table) -> None:
    late = overtaken(lake, change(orders, lambda s: s.drop_column("region"))).load_table("db.orders")

    def add_and_describe() -> None:
        with late.transaction() as table:
            change(table, lambda s: s.add_column("x", "int"))()
            change(table, lambda s: s.set_doc("region", "where"))()

    with pytest.raises(ConflictError, match="`region` was dropped"):
        add_and_describe()
    assert "x" not in orders.refresh().schema.names


def test_eight_writers_add_five_columns_each(lake: Lake, orders: Table) -> None:
    tables = [lake.load_table("db.orders") for _ in range(8)]

    def add(writer: int) -> None:
        for number in range(5):
            with tables[writer].update_schema() as schema:
                schema.add_column(f"w{writer}_{number}", "list<int>")

    run_for_each(add, range(8))
    added = orders.refresh().schema.fields[3:]
    assert {f.name for f in added} == {f"w{w}_{n}" for w in range(8) for n in range(5)}
    assert sorted(orders.schema.ids) == list(range(1, 3 + 40 * 2 + 1))
    assert len(orders.metadata.schemas) == 41
