"""Commits under way while the table's columns or partition specs change, and those that they were made for go."""

import datetime as dt
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import bergline
from bergline import Lake, Table
from bergline.catalog.catalog import Catalog, Committed, Conflicted, Outcome, TableChange
from bergline.errors import ConflictError
from bergline.server.opening import open_server
from bergline.table.commits.operation import CommitStamp
from bergline.table.operations.append import Append
from support.fixtures.catalog_files import new_catalog_uri
from support.fixtures.data_files import written_files
from support.fixtures.rebasing_lake import of_another_writer
from support.fixtures.rows import ORDERS, ids, order_rows
from support.models.table_invariants import check_nothing_is_missing, pointer_line
from support.proxies.response_proxy import AnsweringProxy, Fate
from support.servers.late_commits import Late
from support.servers.server_on_socket import on_socket

pytestmark = pytest.mark.long

FUTURE = dt.datetime(2099, 1, 1, tzinfo=dt.UTC)
Write = Callable[[Table], object]


class Foreign:
    """A client that requires of refs alone that they are as they were, and repeats nothing, as others do."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        catalog.session.rebases_appends = False  # type: ignore[attr-defined]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalog, name)

    def commit(self, changes: tuple[TableChange, ...]) -> Outcome:
        outcome = self._catalog.commit(tuple(map(of_another_writer, changes)))
        if isinstance(outcome, Conflicted):
            raise outcome.reason
        return outcome


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """One server for all tests here: each has a table of its own."""
    context = open_server(new_catalog_uri(tmp_path_factory.mktemp("removed_layout") / "catalog.db"))
    with on_socket(context) as port:
        yield f"http://127.0.0.1:{port}"
    context.catalog.close()


@pytest.fixture(scope="module")
def lake(uri: str) -> Iterator[Lake]:
    with bergline.connect(uri) as connected:
        connected.create_namespace("db")
        yield connected


@pytest.fixture
def table(lake: Lake) -> Table:
    """Partitioned for the second time: nothing has been written with the default spec yet."""
    created = lake.create_table(f"db.t{len(lake.list_tables('db'))}", ORDERS).append(order_rows(1))
    with created.update_spec() as spec:
        spec.add_field("region")
    return created


def change_specs(table: Table) -> None:
    """The default spec becomes another one, and then yet another one; the first is used by nothing."""
    for field in ("id", "bucket(4, id)"):
        with table.update_spec() as spec:
            spec.add_field(field)
    assert table.expire(older_than=FUTURE, clean_metadata=True).removed_specs == (1, 2)


def replace_column(table: Table) -> None:
    with table.update_schema() as schema:
        schema.drop_column("amount")
    with table.update_schema() as schema:
        schema.add_column("amount", "double")


def change_schemas(table: Table) -> None:
    """The table gets columns, and the schema before that is used by nothing."""
    for name in ("one", "two"):
        with table.update_schema() as schema:
            schema.add_column(name, "int")
    assert 1 in table.expire(older_than=FUTURE, clean_metadata=True).removed_schemas


def add_column(table: Table) -> None:
    with table.update_schema() as schema:
        schema.add_column("note", "string")


def late(uri: str, table: Table, rival: Callable[[Table], object], act: Write, *, foreign: bool = False) -> None:
    """What a client does whose commit comes after what a rival does."""
    with bergline.connect(uri) as lake:
        slow: Any = Foreign(lake.catalog) if foreign else lake.catalog
        act(Lake(Late(slow, lambda: rival(table)), "lake").load_table(table.name))  # type: ignore[arg-type]


def append_in_transaction(table: Table) -> None:
    with table.transaction() as tx:
        tx.append(order_rows(9))
        tx.set_properties({"a": "b"})


WRITES: dict[str, Write] = {
    "append": lambda t: t.append(order_rows(9)),
    "append of files": lambda t: t.append_files(written_files(t, order_rows(9))),
    "append to a new branch": lambda t: t.append(order_rows(9), branch="dev"),
    "staged append": lambda t: t.append(order_rows(9), wap_id="w"),
    "overwrite": lambda t: t.overwrite(order_rows(9)),
    "update": lambda t: t.update({"amount": 2.5}),
    "merge": lambda t: t.merge(order_rows(1, 9), on=["id"]).when_matched_update_all().execute(),
    "transaction": append_in_transaction,
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
@pytest.mark.parametrize("foreign", [False, True])
def test_write_for_a_spec_that_is_removed_meanwhile_leaves_the_table_readable(
    uri: str, table: Table, write: Write, *, foreign: bool
) -> None:
    with pytest.raises(ConflictError, match=r"partition spec 1\b.*"):
        late(uri, table, change_specs, write, foreign=foreign)
    assert ids(table.refresh().scan().to_arrow()) == [1]
    assert len(table.metadata.snapshots) == 1
    table.append(order_rows(2))
    check_nothing_is_missing(table)
    pointer_line(table)


@pytest.mark.parametrize("name", [name for name in WRITES if name != "append of files"])
def test_rows_for_a_column_that_is_replaced_meanwhile_conflict(uri: str, table: Table, name: str) -> None:
    with pytest.raises(ConflictError, match="column `amount` would no longer have the id 2"):
        late(uri, table, replace_column, WRITES[name])
    assert table.refresh().scan().to_arrow().column("amount").to_pylist() == [None]
    assert len(table.metadata.snapshots) == 1


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_write_beside_a_new_column_is_made_again_and_lands(uri: str, table: Table, write: Write) -> None:
    late(uri, table, add_column, write)
    newest = table.refresh().metadata.snapshots[-1]
    assert len(table.metadata.snapshots) == 2
    assert newest.schema_id == table.metadata.current_schema_id == 1
    check_nothing_is_missing(table)


def test_append_of_another_client_beside_a_new_column_lands_as_it_is(uri: str, table: Table) -> None:
    late(uri, table, add_column, WRITES["append"], foreign=True)
    assert ids(table.refresh().scan().to_arrow()) == [1, 9]
    assert table.metadata.snapshots[-1].schema_id == 0


def test_snapshot_of_a_schema_that_is_removed_meanwhile_is_refused(uri: str, table: Table) -> None:
    """Of a client that requires nothing of schemas; ours works it out again for the table as it is."""
    with table.update_schema() as schema:
        schema.add_column("first", "int")
    with pytest.raises(
        ConflictError, match=r"expected a snapshot of schema \[0, 3\], found one of schema 1, which was"
    ):
        late(uri, table, change_schemas, WRITES["append"], foreign=True)
    assert ids(table.refresh().scan().to_arrow()) == [1]
    late(uri, table, add_column, WRITES["append"])
    assert table.refresh().metadata.snapshots[-1].schema_id == table.metadata.current_schema_id


def test_request_that_its_client_has_given_up_does_not_land_when_the_columns_are_as_they_were(
    uri: str, table: Table
) -> None:
    """Its files are deleted, for the columns have changed; then they change back, and it arrives after all."""
    table.set_properties({"commit.retry.num-retries": "0"})
    lost = Fate("later", "nothing")
    with AnsweringProxy(uri) as proxy, bergline.connect(proxy.uri) as lake:
        slow = lake.load_table(table.name)
        proxy.meet([lost, lost, lost, lost, Fate(told="server")], then=lambda: add_column(table))
        with pytest.raises(ConflictError, match="current schema"):
            slow.append(order_rows(9))
        with table.update_schema() as schema:
            schema.drop_column("note")
        assert table.metadata.current_schema_id == 0
        assert proxy.release() == 4
    assert ids(table.refresh().scan().to_arrow()) == [1]
    check_nothing_is_missing(table)


@pytest.mark.parametrize("where", [{"branch": "dev"}, {"wap_id": "w"}], ids=["new branch", "staged"])
def test_spec_that_is_used_again_while_an_expiry_is_under_way_is_not_removed(
    uri: str, table: Table, where: dict[str, str]
) -> None:
    """By a snapshot on no ref that the expiry knew of."""
    files = written_files(table, order_rows(9))
    with table.update_spec() as spec:
        spec.add_field("id")
    late(uri, table, lambda t: t.append_files(files, **where), lambda t: t.expire(clean_metadata=True))
    newest = table.refresh().metadata.snapshots[-1]
    assert ids(table.scan(snapshot_id=newest.snapshot_id).to_arrow()) == [1, 9]
    assert table.expire(clean_metadata=True).removed_specs == ()


def test_schema_that_is_used_again_while_an_expiry_is_under_way_is_not_removed(
    uri: str, lake: Lake, table: Table
) -> None:
    """By another client, whose snapshot was made for it, on a branch that the expiry does not know of."""
    add_column(table)
    old = lake.catalog.load_table(table.name)
    with table.update_schema() as schema:
        schema.add_column("second", "int")

    def land(to: Table) -> None:
        append = Append(to.io, (), branch="dev")
        made = append.attempt(old.metadata, CommitStamp(1, old.metadata.last_updated_ms))
        assert isinstance(lake.catalog.commit((TableChange(old, (), made.updates),)), Committed)

    late(uri, table, land, lambda t: t.expire(clean_metadata=True))
    assert ids(table.refresh().scan(snapshot_id=table.metadata.refs["dev"].snapshot_id).to_arrow()) == [1]
