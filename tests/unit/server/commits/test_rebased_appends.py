"""Appends that come late to a server: put on the head where their client says that they may be."""

from collections.abc import Callable, Iterator

import pytest

import bergline
from bergline import Lake, Table
from bergline.errors import ConflictError, RefusedError
from bergline.format.metadata.snapshot import REBASED_FROM
from bergline.server.context.context import ServerContext
from bergline.table.operations.append import Append
from bergline.table.references.stream_batches import CommittedOnce, StreamBatch
from bergline.table.writes import write_data_files
from support.fixtures.concurrency import run_for_each
from support.fixtures.rows import ORDERS, ids, order_rows
from support.models.table_invariants import check_nothing_is_missing, pointer_line, unneeded_files
from support.proxies.response_proxy import AnsweringProxy, Fate
from support.servers.asgi_client import AsgiClient
from support.servers.late_commits import Late
from support.servers.server_on_socket import on_socket

pytestmark = pytest.mark.long


@pytest.fixture
def uri(context: ServerContext) -> Iterator[str]:
    with on_socket(context) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def served(uri: str) -> Iterator[Lake]:
    with bergline.connect(uri) as lake:
        lake.create_namespace("db")
        yield lake


def conflicts(context: ServerContext) -> list[str]:
    return [e.conflict for e in context.records.newest_audit(1000, conflicts=True) if e.conflict is not None]


def append_late(uri: str, rival: Callable[[], object], *, silent: bool = False, rows: int = 9) -> Table:
    with bergline.connect(uri) as lake:
        late = Lake(Late(lake.catalog, rival, silent=silent), "lake")  # type: ignore[arg-type]
        return late.load_table("db.t").append(order_rows(rows))


def one_list_each(table: Table) -> None:
    """Nothing is left of the manifest lists that were not used, and nothing is missing."""
    check_nothing_is_missing(table)
    pointer_line(table)
    assert unneeded_files(table) == set()


def test_appends_of_many_clients_to_one_table_never_conflict(uri: str, served: Lake, context: ServerContext) -> None:
    table = served.create_table("db.t", ORDERS, properties={"commit.manifest.min-count-to-merge": "5"})

    def write(number: int) -> None:
        with bergline.connect(uri) as lake:
            own = lake.load_table("db.t")
            for count in range(4):
                own.append(order_rows(number * 10 + count))

    run_for_each(write, range(4))
    table.refresh()
    assert ids(table.scan().to_arrow()) == [number * 10 + count for number in range(4) for count in range(4)]
    assert conflicts(context) == []
    assert any(REBASED_FROM in s.summary for s in table.metadata.snapshots)
    assert [s.summary["total-records"] for s in table.metadata.snapshots] == [str(n) for n in range(1, 17)]
    one_list_each(table)


def test_writers_of_different_branches_never_conflict(uri: str, served: Lake, context: ServerContext) -> None:
    """Whatever they do: here they delete, too, and say nothing of moves."""
    table = served.create_table("db.t", ORDERS).append(order_rows(1, 2, 3, 4))
    for number in range(1, 5):
        table.refs.create_branch(f"b{number}")

    def write(number: int) -> None:
        with bergline.connect(uri) as lake:
            lake.catalog.session.rebases_appends = False  # type: ignore[attr-defined]
            own = lake.load_table("db.t")
            own.append(order_rows(10 * number), branch=f"b{number}")
            own.delete(f"id = {number}", branch=f"b{number}")

    run_for_each(write, range(1, 5))
    table.refresh()
    assert conflicts(context) == []
    for number in range(1, 5):
        found = ids(table.scan(ref=f"b{number}").to_arrow())
        assert found == sorted({1, 2, 3, 4, 10 * number} - {number})
    check_nothing_is_missing(table)
    pointer_line(table)


@pytest.mark.parametrize("moves", [True, False])
def test_client_alone_decides_whether_its_append_moves(
    uri: str, served: Lake, context: ServerContext, *, moves: bool
) -> None:
    """Not the table: the append of a client that says nothing may have been an overwrite of what it did not find."""
    table = served.create_table("db.t", ORDERS, properties={"commit.server-rebase": "appends" if not moves else "none"})
    table.append(order_rows(1))
    after = append_late(uri, lambda: table.append(order_rows(2)), silent=not moves)
    assert ids(after.scan().to_arrow()) == [1, 2, 9]
    assert len(conflicts(context)) == (not moves)
    one_list_each(after)


def test_transaction_of_several_tables_is_not_moved(uri: str, served: Lake, context: ServerContext) -> None:
    table, other = (served.create_table(name, ORDERS) for name in ("db.t", "db.u"))
    with bergline.connect(uri) as lake:
        late = Lake(Late(lake.catalog, lambda: table.append(order_rows(2))), "lake")  # type: ignore[arg-type]
        with late.transaction() as tx:
            tx.load_table("db.t").append(order_rows(1))
            tx.load_table("db.u").append(order_rows(1))
    assert ids(table.refresh().scan().to_arrow()) == [1, 2]
    assert ids(other.refresh().scan().to_arrow()) == [1]
    assert len(conflicts(context)) == 2  # one for each table


def test_stream_batch_that_is_there_already_is_not_moved_behind_itself(uri: str, served: Lake) -> None:
    """Its client says that this one must not move."""
    table = served.create_table("db.t", ORDERS).append(order_rows(1))
    batch = StreamBatch("query", 3)

    def write(to: Table, rows: int) -> None:
        files = write_data_files(to.io, to.metadata, order_rows(rows))
        append = Append(to.io, files, summary=batch.summary, discard_on_failure=True)
        to.commit(CommittedOnce(append, batch, "main"))

    with bergline.connect(uri) as lake:
        late = Lake(Late(lake.catalog, lambda: write(table, 2)), "lake")  # type: ignore[arg-type]
        write(late.load_table("db.t"), 3)
    assert ids(table.refresh().scan().to_arrow()) == [1, 2]


@pytest.mark.parametrize("keys", [True, False])
def test_append_whose_answer_is_lost_is_there_once(uri: str, served: Lake, *, keys: bool) -> None:
    table = served.create_table("db.t", ORDERS).append(order_rows(1))
    with AnsweringProxy(uri) as proxy:
        proxy.keys = keys

        def rival() -> None:
            table.append(order_rows(2))
            proxy.meet([Fate("now", "reset"), Fate("now", "server")])

        append_late(proxy.uri, rival)
    assert ids(table.refresh().scan().to_arrow()) == [1, 2, 9]
    one_list_each(table)


@pytest.mark.parametrize("keys", [True, False])
def test_append_that_is_sent_again_while_the_first_is_under_way_is_there_once(
    uri: str, served: Lake, *, keys: bool
) -> None:
    """Its branch has moved on in between, which does not mean that the first one can no longer land."""
    once = {"commit.retry.num-retries": "0"}
    table = served.create_table("db.t", ORDERS, properties=once).append(order_rows(1))
    with AnsweringProxy(uri) as proxy:
        proxy.keys = keys

        def rival() -> None:
            table.append(order_rows(2))
            proxy.meet([Fate("later", "reset"), Fate("now", "server")])

        append_late(proxy.uri, rival)
        assert proxy.release() == 1
    assert ids(table.refresh().scan().to_arrow()) == [1, 2, 9]
    one_list_each(table)


def test_rule_of_the_branch_holds_for_what_is_moved(uri: str, served: Lake) -> None:
    table = served.create_table("db.t", ORDERS).append(order_rows(1))

    def rival() -> None:
        table.append(order_rows(2)).refs.protect("main", only_publish=True)

    with pytest.raises(RefusedError, match="moves only by publishing"):
        append_late(uri, rival)
    assert ids(table.refresh().scan().to_arrow()) == [1, 2]
    one_list_each(table)


def test_append_to_a_column_that_was_replaced_loses_no_values(uri: str, served: Lake) -> None:
    table = served.create_table("db.t", ORDERS).append(order_rows(1))

    def rival() -> None:
        with table.update_schema() as schema:
            schema.drop_column("amount")
        with table.update_schema() as schema:
            schema.add_column("amount", "double")

    with pytest.raises(ConflictError, match="column `amount` would no longer have the id 2"):
        append_late(uri, rival)
    assert ids(table.refresh().scan().to_arrow()) == [1]
    one_list_each(table)


def test_header_that_is_neither_true_nor_false_is_refused(client: AsgiClient) -> None:
    client.namespace("db")
    client.table()
    response = client.commit(headers={"bergline-may-move": "perhaps"})
    assert response.status == 400
    assert "expected true or false in the header `bergline-may-move`, found `perhaps`" in response.message
