"""Refs of several tables as one: all of them move, or none, and the error says why for every table that cannot."""

import datetime as dt
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import obstore
import obstore.store
import pytest

import bergline
from bergline import Lake, Table
from bergline.catalog.object_store.object_store import ObjectPointerStore
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.errors import (
    AlreadyExistsError,
    BerglineError,
    CommitUnknownError,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    TablesRefusedError,
    UnsupportedError,
)
from bergline.io.conditional_objects import ConditionalObjects
from bergline.io.memory import MemoryFileIO
from bergline.io.open_store import OpenStore
from bergline.io.schemes import SchemeFileIO
from bergline.testing.faults import Fault
from support.fixtures.competing_writers import files, overtaken, rival_lake
from support.fixtures.concurrency import run_at_once
from support.fixtures.rows import ORDERS, ids, order_rows

pytestmark = pytest.mark.long

BOTH = ["db.orders", "db.items"]


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    """Two tables with a row each."""
    with bergline.connect(f"sqlite:///{tmp_path}/catalog.db", create=True) as opened:
        yield with_tables(opened)


@pytest.fixture(params=["memory", "sqlite", "object store", pytest.param("postgres", marks=pytest.mark.server)])
def any_lake(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lake]:
    """The same in every kind of catalog that can move several pointers."""
    match request.param:
        case "object store":
            objects = in_memory()
            io = SchemeFileIO({"memory": MemoryFileIO()})
            opened = Lake(PointerCatalog(ObjectPointerStore(objects), io, "memory://warehouse"), "lake")
        case "postgres":
            uri = request.getfixturevalue("postgres")
            opened = bergline.connect(uri, warehouse=tmp_path / "warehouse", name=uuid.uuid4().hex, create=True)
        case kind:
            opened = bergline.connect("memory:" if kind == "memory" else f"sqlite:///{tmp_path}/any.db", create=True)
    with opened:
        yield with_tables(opened)


def in_memory() -> ConditionalObjects:
    memory = obstore.store.MemoryStore()
    return ConditionalObjects(OpenStore(obstore, memory, memory), "memory://here/lake/catalog")


def with_tables(lake: Lake) -> Lake:
    lake.create_namespace("db")
    for name in BOTH:
        lake.create_table(name, ORDERS).append(order_rows(1))
    return lake


def write(lake: Lake, name: str, *order_ids: int, branch: str = "main") -> Table:
    return lake.load_table(name).append(order_rows(*order_ids), branch=branch)


def rows(lake: Lake, ref: str = "main") -> list[list[int]]:
    return [ids(lake.load_table(name).scan(ref=ref).to_arrow()) for name in BOTH]


def pointers(lake: Lake) -> list[str]:
    return [lake.load_table(name).metadata_location for name in BOTH]


def reasons(change: Callable[[], object]) -> dict[str, BerglineError]:
    with pytest.raises(TablesRefusedError) as caught:
        change()
    return caught.value.reasons


def test_branch_is_written_audited_and_published_in_all_tables_at_once(any_lake: Lake) -> None:
    created = any_lake.branch("etl-42", BOTH, max_ref_age_ms=1000)
    assert [(t.table, t.what) for t in created.tables] == [("db.orders", "created"), ("db.items", "created")]
    for name in BOTH:
        ref = any_lake.load_table(name).refs["etl-42"]
        assert (ref.is_branch, ref.max_ref_age_ms) == (True, 1000)
        write(any_lake, name, 2, branch="etl-42")
    assert (rows(any_lake), rows(any_lake, "etl-42")) == ([[1], [1]], [[1, 2], [1, 2]])
    heads = [any_lake.load_table(name).refs["etl-42"].snapshot_id for name in BOTH]

    published = any_lake.publish("etl-42", into="main")
    assert rows(any_lake) == [[1, 2], [1, 2]]
    assert {(t.table, t.what, t.head) for t in published.tables} == {
        (name, "fast-forwarded", head) for name, head in zip(BOTH, heads, strict=True)
    }
    assert any_lake.tables_with_ref("etl-42") == []


def test_tag_stands_in_all_tables_and_is_dropped_from_all(any_lake: Lake) -> None:
    any_lake.tag("release-7", BOTH)
    write(any_lake, "db.orders", 2)
    assert rows(any_lake, "release-7") == [[1], [1]]
    assert sorted(any_lake.tables_with_ref("release-7")) == ["db.items", "db.orders"]
    dropped = any_lake.drop_ref("release-7")
    assert [t.what for t in dropped.tables] == ["dropped", "dropped"]
    assert any_lake.tables_with_ref("release-7") == []


def test_every_table_may_have_its_own_place(lake: Lake) -> None:
    first = lake.load_table("db.orders").metadata.refs["main"].snapshot_id
    write(lake, "db.orders", 2)
    write(lake, "db.items", 2, branch="dev")
    lake.tag("release-7", {"db.orders": first, "db.items": "dev"})
    assert rows(lake, "release-7") == [[1], [1, 2]]
    lake.branch("next", BOTH, at="release-7")
    assert rows(lake, "next") == [[1], [1, 2]]
    with pytest.raises(InvalidInputError, match="expected no `at` beside a snapshot for each table, found 'main'"):
        lake.tag("v8", {"db.orders": first}, at="main")


def test_namespace_stands_for_its_tables_and_those_below_it(lake: Lake) -> None:
    for namespace in ("db.raw", "db.raw.eu", "other"):
        lake.create_namespace(namespace)
        lake.create_table(f"{namespace}.t", ORDERS).append(order_rows(1))
    report = lake.tag("v1", namespace="db")
    assert sorted(t.table for t in report.tables) == ["db.items", "db.orders", "db.raw.eu.t", "db.raw.t"]
    lake.tag("v1", ["other.t"])
    assert lake.tables_with_ref("v1", namespace="db.raw") == ["db.raw.t", "db.raw.eu.t"]
    lake.drop_ref("v1", namespace="db")
    assert lake.tables_with_ref("v1") == ["other.t"]
    lake.create_namespace("empty")
    with pytest.raises(NotFoundError, match="no table in namespace `empty`"):
        lake.tag("v1", namespace="empty")
    with pytest.raises(NotFoundError, match="no namespace `nowhere`"):
        lake.tag("v1", namespace="nowhere")


def test_refusal_has_the_reason_of_every_table_and_changes_none(any_lake: Lake) -> None:
    any_lake.create_table("db.empty", ORDERS)
    write(any_lake, "db.items", 2).refs.create_branch("v1")
    before = pointers(any_lake)
    found = reasons(lambda: any_lake.tag("v1", ["db.missing", *BOTH, "db.empty"]))
    assert {table: type(error) for table, error in found.items()} == {
        "db.missing": NotFoundError,
        "db.items": AlreadyExistsError,
        "db.empty": InvalidInputError,
    }
    assert pointers(any_lake) == before
    with pytest.raises(RefusedError) as caught:
        any_lake.tag("v1", [*BOTH, "db.empty"])
    assert str(caught.value).splitlines() == [
        "cannot create tag `v1`: 2 of 3 tables cannot, and none was changed",
        "  `db.items`: branch `v1` exists already",
        "  `db.empty`: expected a snapshot for `v1` to name, found an empty table",
    ]


def test_branch_of_an_empty_table_is_published_as_its_first_rows(any_lake: Lake) -> None:
    any_lake.create_table("db.empty", ORDERS)
    any_lake.branch("etl-42", ["db.orders", "db.empty"])
    assert any_lake.load_table("db.empty").current_snapshot is None
    write(any_lake, "db.empty", 5, branch="etl-42")
    published = any_lake.publish("etl-42")
    assert [(t.table, t.what) for t in sorted(published.tables, key=lambda t: t.table)] == [
        ("db.empty", "created"),
        ("db.orders", "unchanged"),
    ]
    assert ids(any_lake.load_table("db.empty").scan().to_arrow()) == [5]


def test_existing_refs_stay_or_are_replaced_as_the_flags_say(lake: Lake) -> None:
    lake.load_table("db.items").refs.create_tag("v1", max_ref_age_ms=1000)
    write(lake, "db.items", 2)
    kept = lake.tag("v1", BOTH, if_not_exists=True)
    assert [t.what for t in kept.tables] == ["created", "unchanged"]
    assert rows(lake, "v1") == [[1], [1]]
    replaced = lake.tag("v1", BOTH, or_replace=True)
    assert [t.what for t in replaced.tables] == ["unchanged", "replaced"]
    assert rows(lake, "v1") == [[1], [1, 2]]
    assert lake.load_table("db.items").refs["v1"].max_ref_age_ms == 1000


def test_main_that_moved_on_is_refused_until_the_caller_says_merge(any_lake: Lake) -> None:
    any_lake.branch("etl-42", BOTH)
    ancestor = any_lake.load_table("db.items").refs["main"].snapshot_id
    for name in BOTH:
        write(any_lake, name, 2, branch="etl-42")
    write(any_lake, "db.items", 3)
    before = pointers(any_lake)
    (reason,) = reasons(lambda: any_lake.publish("etl-42")).values()
    assert f"both have moved on since snapshot {ancestor}" in str(reason)
    assert any("`merge=True`" in hint for hint in reason.hints)
    assert pointers(any_lake) == before

    published = any_lake.publish("etl-42", merge=True)
    assert rows(any_lake) == [[1, 2], [1, 2, 3]]
    items, orders = sorted(published.tables, key=lambda t: t.table)
    assert (items.what, len(items.replayed), orders.what, orders.replayed) == ("merged", 1, "fast-forwarded", {})
    assert items.head in items.replayed.values()


def test_table_in_which_the_branch_has_nothing_of_its_own_does_not_get_in_the_way(lake: Lake) -> None:
    lake.branch("etl-42", BOTH)
    write(lake, "db.orders", 2, branch="etl-42")
    write(lake, "db.items", 3)
    assert [t.what for t in lake.publish("etl-42", tables=BOTH).tables] == ["fast-forwarded", "unchanged"]
    assert rows(lake) == [[1, 2], [1, 3]]
    assert lake.tables_with_ref("etl-42") == []


def test_branch_that_is_kept_can_be_published_again(lake: Lake) -> None:
    lake.branch("staging", BOTH, min_snapshots_to_keep=3)
    write(lake, "db.orders", 2, branch="staging")
    lake.publish("staging", keep_branch=True)
    assert lake.tables_with_ref("staging") == lake.list_tables("db")
    pointer = pointers(lake)
    again = lake.publish("staging", keep_branch=True)
    assert {t.what for t in again.tables} == {"unchanged"}
    assert pointers(lake) == pointer
    assert lake.load_table("db.orders").refs["staging"].min_snapshots_to_keep == 3


def test_branch_that_was_merged_and_kept_adds_nothing_when_it_is_published_again(lake: Lake) -> None:
    lake.branch("staging", BOTH)
    write(lake, "db.orders", 2, branch="staging")
    write(lake, "db.orders", 3)
    lake.publish("staging", merge=True, keep_branch=True)
    pointer = pointers(lake)
    again = lake.publish("staging", keep_branch=True)
    assert {t.what for t in again.tables} == {"unchanged"}
    assert pointers(lake) == pointer
    write(lake, "db.orders", 4, branch="staging")
    assert "both have moved on" in str(reasons(lambda: lake.publish("staging"))["db.orders"])


def test_branch_goes_into_any_other_branch(lake: Lake) -> None:
    lake.branch("qa", BOTH)
    lake.branch("etl-42", BOTH)
    write(lake, "db.orders", 2, branch="etl-42")
    found = reasons(lambda: lake.publish("etl-42", into="qs"))
    assert list(found) == sorted(BOTH)
    assert all(isinstance(e, NotFoundError) for e in found.values())
    lake.publish("etl-42", into="qa")
    assert (rows(lake), rows(lake, "qa")) == ([[1], [1]], [[1, 2], [1]])


def test_history_that_expired_is_squashed(lake: Lake) -> None:
    lake.branch("etl-42", BOTH)
    for number in (2, 3, 4):
        write(lake, "db.orders", number, branch="etl-42")
    orders = write(lake, "db.orders", 5)
    expired = orders.metadata.snapshots[2].snapshot_id
    orders.expire(older_than=dt.datetime(2000, 1, 1, tzinfo=dt.UTC), snapshot_ids=[expired])
    found = reasons(lambda: lake.publish("etl-42", merge=True))
    assert list(found) == ["db.orders"]
    assert str(expired) in str(found["db.orders"])
    assert [t.what for t in lake.publish("etl-42", tables=BOTH, squash=True).tables] == ["merged", "unchanged"]
    assert rows(lake) == [[1, 2, 3, 4, 5], [1]]


def test_publish_tags_what_it_made_of_main_in_the_same_commit(lake: Lake) -> None:
    lake.branch("etl", BOTH)
    lake.load_table("db.orders").append(order_rows(2), branch="etl")
    lake.load_table("db.items").append(order_rows(3), branch="etl").append(order_rows(4))
    before = {name: lake.load_table(name).metadata_location for name in BOTH}
    lake.publish("etl", merge=True, tag="v1")
    for name in BOTH:
        table = lake.load_table(name)
        assert table.refs["v1"].snapshot_id == table.refs["main"].snapshot_id
        assert list(table.refs) == ["main", "v1"]
        assert table.metadata.metadata_log[-1].metadata_file == before[name]


def test_publish_with_a_tag_that_exists_changes_nothing(lake: Lake) -> None:
    lake.branch("etl", BOTH)
    lake.load_table("db.orders").append(order_rows(2), branch="etl")
    lake.tag("v1", ["db.items"])
    assert set(reasons(lambda: lake.publish("etl", tag="v1"))) == {"db.items"}
    assert ids(lake.load_table("db.orders").scan().to_arrow()) == [1]


def test_publish_is_refused_where_a_branch_is_not_at_the_snapshot_that_was_looked_at(lake: Lake) -> None:
    lake.branch("etl", BOTH)
    seen = {name: lake.load_table(name).append(order_rows(2), branch="etl").refs["etl"].snapshot_id for name in BOTH}
    lake.load_table("db.items").append(order_rows(3), branch="etl")
    assert set(reasons(lambda: lake.publish("etl", tables=seen))) == {"db.items"}
    assert ids(lake.load_table("db.orders").scan().to_arrow()) == [1]
    with pytest.raises(InvalidInputError, match="whole number for the snapshot of"):
        lake.publish("etl", tables={"db.orders": "main"})


def test_tag_is_not_published_and_main_is_not_dropped(lake: Lake) -> None:
    lake.branch("etl-42", ["db.orders"])
    lake.tag("etl-42", ["db.items"])
    assert {t: str(e) for t, e in reasons(lambda: lake.publish("etl-42")).items()} == {
        "db.items": "expected a branch, found the tag `etl-42`"
    }
    lake.drop_ref("etl-42")  # a branch here, a tag there
    assert lake.tables_with_ref("etl-42") == []
    lake.branch("prod", BOTH)
    before = pointers(lake)
    assert set(reasons(lambda: lake.drop_ref("main"))) == set(BOTH)
    assert set(reasons(lambda: lake.publish("main", into="prod"))) == set(BOTH)
    assert set(reasons(lambda: lake.publish("prod", into="main", tables=[*BOTH, "db.none"]))) == {"db.none"}
    assert pointers(lake) == before


def test_ref_that_no_table_has_is_not_found(lake: Lake) -> None:
    for change in (lake.publish, lake.drop_ref):
        with pytest.raises(NotFoundError, match="no table with a branch or tag `etl-42`"):
            change("etl-42")
    assert lake.drop_ref("etl-42", if_exists=True).tables == ()
    assert [t.what for t in lake.drop_ref("etl-42", tables=BOTH, if_exists=True).tables] == ["unchanged"] * 2
    assert set(reasons(lambda: lake.drop_ref("etl-42", tables=BOTH))) == set(BOTH)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda lake: lake.branch("b"), "expected either tables or a namespace, found neither"),
        (lambda lake: lake.tag("b", BOTH, namespace="db"), "expected either tables or a namespace, found both"),
        (lambda lake: lake.publish("b", tables=BOTH, namespace="db"), "tables or a namespace, found both"),
        (lambda lake: lake.branch("b", []), "expected at least one table, found none"),
        (lambda lake: lake.branch("b", "db.orders"), "expected a list of tables, found 'db.orders'"),
        (lambda lake: lake.branch("b", 5), "expected a list of tables, found 5"),
        (lambda lake: lake.branch("b", ["orders"]), "expected a table name like `db.orders`, found `orders`"),
        (lambda lake: lake.branch("b", [*BOTH, "db.orders"]), "expected each table once, found `db.orders` twice"),
        (lambda lake: lake.drop_ref("b", tables={"db.orders": "main"}), "expected a list of tables, found {"),
        (lambda lake: lake.branch("", BOTH), "expected a ref name of 1 to 255 characters, found 0"),
        (lambda lake: lake.tables_with_ref(5), "expected the name of a branch or tag, found 5"),
        (lambda lake: lake.tag("b", BOTH, max_ref_age_ms=0), "expected max-ref-age-ms above 0, found 0"),
        (lambda lake: lake.branch("b", BOTH, if_not_exists=True, or_replace=True), "expected one of if_not_exists"),
        (lambda lake: lake.publish("main"), "expected two branches, found `main` twice"),
        (lambda lake: lake.publish("main", into=None), "expected the name of a branch or tag, found None"),
        (lambda lake: lake.branch("b", namespace=""), "expected a namespace like `db`"),
    ],
)
def test_wrong_call_is_one_clear_error(lake: Lake, call: Callable[[Lake], object], message: str) -> None:
    before = pointers(lake)
    with pytest.raises(InvalidInputError) as caught:
        call(lake)
    assert message in str(caught.value)
    assert pointers(lake) == before


def test_catalog_of_one_pointer_takes_one_table_and_refuses_several_before_anything_is_written(tmp_path: Path) -> None:
    with bergline.connect(f"file://{tmp_path}/lake", create=True) as lake:
        with_tables(lake)
        before = files(lake.load_table("db.orders"), "*.*")
        for change in (lake.branch, lake.tag):
            with pytest.raises(UnsupportedError, match="expected changes to one table, found 2"):
                change("etl-42", BOTH)
        assert files(lake.load_table("db.orders"), "*.*") == before
        lake.branch("etl-42", ["db.orders"])
        write(lake, "db.orders", 2, branch="etl-42")
        assert lake.publish("etl-42").tables[0].what == "fast-forwarded"
        assert rows(lake) == [[1, 2], [1]]


def test_other_commits_come_first_and_the_change_is_worked_out_again(any_lake: Lake) -> None:
    any_lake.branch("etl-42", BOTH)
    for name in BOTH:
        write(any_lake, name, 2, branch="etl-42")
    others = [
        lambda: any_lake.load_table("db.orders").refs.create_tag("theirs"),
        lambda: write(any_lake, "db.items", 9, branch="dev"),
        lambda: any_lake.load_table("db.items").set_properties({"a": "b"}),
        lambda: write(any_lake, "db.orders", 9, branch="dev"),
        lambda: any_lake.load_table("db.orders").set_properties({"a": "b"}),
        lambda: any_lake.load_table("db.orders").set_properties({"a": "c"}),
    ]
    overtaken(any_lake, *others).publish("etl-42")
    assert rows(any_lake) == [[1, 2], [1, 2]]
    assert any_lake.load_table("db.orders").properties["a"] == "c"
    overtaken(any_lake, *[lambda: write(any_lake, "db.items", 3)] * 7).tag("after", BOTH)
    assert rows(any_lake, "after") == [[1, 2], [1, 2, *[3] * 7]]


def test_merge_of_deletes_goes_on_as_long_as_others_only_append(lake: Lake) -> None:
    write(lake, "db.items", 5)
    lake.branch("etl-42", BOTH)
    lake.load_table("db.items").delete("id = 5", branch="etl-42")
    rival = overtaken(lake, *[lambda: write(lake, "db.items", 3)] * 7)
    (items, _) = rival.publish("etl-42", merge=True).tables
    assert items.what == "merged"
    assert rows(lake) == [[1], [1, *[3] * 7]]
    assert len(files(lake.load_table("db.items"), "snap-*.avro")) == len(lake.load_table("db.items").metadata.snapshots)


def test_checks_are_repeated_in_every_attempt(lake: Lake) -> None:
    lake.branch("etl-42", BOTH)
    write(lake, "db.items", 2, branch="etl-42")
    found = reasons(lambda: overtaken(lake, lambda: write(lake, "db.items", 3)).publish("etl-42"))
    assert list(found) == ["db.items"]
    found = reasons(
        lambda: overtaken(lake, lambda: write(lake, "db.items", 4, branch="etl-42")).publish("etl-42", merge=True)
    )
    assert isinstance(found["db.items"], ConflictError)
    assert "another commit moved it while it was published" in str(found["db.items"])
    rival = overtaken(lake, lambda: lake.load_table("db.orders").refs.create_tag("v1"))
    assert isinstance(reasons(lambda: rival.tag("v1", BOTH))["db.orders"], AlreadyExistsError)
    assert lake.tables_with_ref("v1") == ["db.orders"]
    write(lake, "db.orders", 5)
    rival = overtaken(lake, lambda: lake.load_table("db.orders").refs.replace_tag("v1"))
    assert isinstance(reasons(lambda: rival.drop_ref("v1"))["db.orders"], ConflictError)
    rival = overtaken(lake, lambda: lake.drop_table("db.orders"))
    assert isinstance(reasons(lambda: rival.tag("v2", BOTH))["db.orders"], NotFoundError)


@pytest.mark.parametrize("fault", [Fault.LANDS_BUT_ANSWER_IS_LOST, Fault.NEVER_ARRIVES, Fault.DELIVERED_TWICE])
def test_lost_answer_is_settled(any_lake: Lake, fault: Fault) -> None:
    rival_lake(any_lake, fault)[0].branch("etl-42", BOTH)
    for name in BOTH:
        write(any_lake, name, 2, branch="etl-42")
        write(any_lake, name, 3)
    snapshots = len(any_lake.load_table("db.items").metadata.snapshots)
    published = rival_lake(any_lake, fault)[0].publish("etl-42", merge=True)
    assert [t.what for t in published.tables] == ["merged", "merged"]
    assert rows(any_lake) == [[1, 2, 3], [1, 2, 3]]
    assert any_lake.tables_with_ref("etl-42") == []
    assert len(any_lake.load_table("db.items").metadata.snapshots) == snapshots + 1


def test_outcome_that_nobody_knows_is_told_and_nothing_is_deleted(lake: Lake) -> None:
    lake.branch("etl-42", BOTH)
    write(lake, "db.orders", 2, branch="etl-42")
    with pytest.raises(CommitUnknownError):
        rival_lake(lake, Fault.STORE_GOES_AWAY)[0].publish("etl-42")
    assert rows(lake) == [[1, 2], [1]]


def test_two_publish_while_another_appends(any_lake: Lake) -> None:
    """Every round of both tables comes in as one, whatever happens to the tables meanwhile."""

    def append() -> None:
        for number in range(100, 106):
            write(any_lake, "db.items", number)
            write(any_lake, "db.orders", number, branch="dev")

    def publish(name: str, *numbers: int) -> None:
        for number in numbers:
            any_lake.branch(name, BOTH)
            for table in BOTH:
                write(any_lake, table, number, branch=name)
            any_lake.publish(name, tables=BOTH, merge=True)

    run_at_once(append, lambda: publish("etl-1", 10, 11), lambda: publish("etl-2", 20, 21))
    assert rows(any_lake) == [[1, 10, 11, 20, 21], [1, 10, 11, 20, 21, *range(100, 106)]]
    assert any_lake.tables_with_ref("etl-1") == any_lake.tables_with_ref("etl-2") == []


def test_refs_of_several_tables_in_a_transaction(lake: Lake) -> None:
    with lake.transaction() as tx:
        for name in BOTH:
            table = tx.load_table(name)
            table.append(order_rows(2), branch="etl-42")
            table.refs.merge("etl-42", into="main")
            table.refs.drop_branch("etl-42")
            table.refs.create_tag("release-7")
    assert rows(lake, "release-7") == rows(lake) == [[1, 2], [1, 2]]
    assert lake.tables_with_ref("etl-42") == []


def test_search_survives_tables_and_namespaces_that_are_dropped_under_it(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.tag("v1", BOTH)
    lake.create_namespace("db.raw")
    lake.create_table("db.raw.t", ORDERS).append(order_rows(1)).refs.create_tag("v1")
    lake.create_view("db.v", "SELECT 1 AS n", ORDERS)
    listed = lake.catalog.list_tables

    def list_and_drop(namespace: tuple[str, ...]) -> object:
        found = listed(namespace)
        if namespace == ("db",):
            monkeypatch.undo()
            lake.purge_table("db.orders")
            lake.drop_table("db.raw.t")
            lake.drop_namespace("db.raw")
        return found

    monkeypatch.setattr(lake.catalog, "list_tables", list_and_drop)
    assert lake.tables_with_ref("v1") == ["db.items"]


def test_search_tells_of_a_table_that_it_cannot_read(lake: Lake) -> None:
    Path(lake.load_table("db.orders").metadata_location.removeprefix("file://")).unlink()
    uncached = Lake(PointerCatalog(lake.catalog.store, lake.catalog.io, "unused"), "lake")  # type: ignore[attr-defined]
    with pytest.raises(NotFoundError, match=r"table `db\.orders` points to"):
        uncached.tables_with_ref("main")


def test_reports_are_read_by_people(lake: Lake) -> None:
    lake.branch("etl-42", BOTH)
    write(lake, "db.orders", 2, branch="etl-42")
    write(lake, "db.items", 2, branch="etl-42")
    write(lake, "db.items", 3)
    start = [lake.load_table(n).refs["main"].snapshot_id for n in BOTH]
    report = lake.publish("etl-42", tables=BOTH, merge=True)
    end = [lake.load_table(n).refs["main"].snapshot_id for n in BOTH]
    assert str(report).splitlines() == [
        "published `etl-42` into `main`, 2 tables:",
        f"  db.orders: fast-forwarded {start[0]} → {end[0]}",
        f"  db.items: merged {start[1]} → {end[1]}, 1 snapshot replayed",
    ]
    assert str(lake.tag("v1", ["db.orders"])) == f"created tag `v1`, 1 table:\n  db.orders: created {end[0]}"
    assert str(lake.tag("v1", ["db.orders"], if_not_exists=True)).endswith(f"unchanged {end[0]}")
    assert str(lake.drop_ref("v1")).endswith(f"dropped {end[0]}")


def test_branch_and_namespace_that_are_missing_list_the_near_ones(lake: Lake) -> None:
    table = lake.create_table("db.near", ORDERS).append(order_rows(1))
    table.refs.create_branch("staging")
    for change in (lambda: lake.publish("stagng"), lambda: lake.drop_ref("stagng")):
        with pytest.raises(NotFoundError) as caught:
            change()
        assert caught.value.near == ("staging",)
    with pytest.raises(NotFoundError) as caught:
        lake.branch("x", namespace="dbb")
    assert caught.value.near == ("db",)
