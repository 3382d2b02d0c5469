"""Pull requests in SQLite and PostgreSQL."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from bergline.catalog.identifiers import TableName
from bergline.catalog.sql.governance_layout import PULL_REQUEST_HISTORY, PULL_REQUESTS
from bergline.catalog.sql.sql_store import SqlPointerStore
from bergline.errors import AlreadyExistsError, NotFoundError
from bergline.governance.pull_requests.model import (
    EntryKind,
    ProposedTable,
    PublishMethod,
    PullRequestEntry,
    PullRequestRecord,
    PullRequestState,
    TableHead,
)
from bergline.governance.pull_requests.store import SqlPullRequests
from bergline.lake.opening import CatalogConfig, open_catalog
from support.fixtures.catalog_files import new_catalog_uri

T = TableName(("db", "a.b"), "orders")
AT_ONCE = 6


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.server)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqlPointerStore]:
    uri = new_catalog_uri(tmp_path / "catalog.db") if request.param == "sqlite" else request.getfixturevalue("postgres")
    catalog: Any = open_catalog(
        CatalogConfig(uri, f"file://{tmp_path}", f"pr-{tmp_path.name}", {}, 10.0, (), 10**6, True)
    )
    yield catalog.store
    catalog.close()


@pytest.fixture
def requests(store: SqlPointerStore) -> SqlPullRequests:
    return SqlPullRequests(store.database, store.catalog_name)


def new(branch: str = "work") -> PullRequestRecord:
    return PullRequestRecord(0, "Rows", "ann", branch, "main", (ProposedTable(T, "u1"),), 1, 1, description="of May")


def add(requests: SqlPullRequests, branch: str = "work") -> PullRequestRecord:
    return requests.add(new(branch))


def test_pull_request_is_found_as_it_was_left(requests: SqlPullRequests) -> None:
    added = add(requests)
    assert requests.find(1) == added == msgspec.structs.replace(new(), number=1)
    heads = (TableHead(T, 2**62),)

    def publish(_: sa.Connection, record: PullRequestRecord) -> PullRequestRecord:
        state, method = PullRequestState.PUBLISHED, PublishMethod.MERGE
        return msgspec.structs.replace(record, state=state, published=heads, method=method)

    entry = PullRequestEntry(7, "bob", EntryKind.PUBLISHED, "merge", heads)
    done = requests.change(1, entry, publish)
    assert requests.find(1) == done
    assert (done.version, done.updated_ms, done.published) == (2, 7, heads)
    assert requests.history(1) == (PullRequestEntry(1, "ann", EntryKind.OPENED), entry)
    with pytest.raises(NotFoundError, match="no pull request 2"):
        requests.find(2)


def test_change_that_fails_in_its_transaction_leaves_nothing(store: SqlPointerStore, requests: SqlPullRequests) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError), store.database.before_commit(fail):
        requests.add(new())
    assert requests.page(None, None, 9) == []
    added = add(requests)
    with pytest.raises(RuntimeError), store.database.before_commit(fail):
        requests.change(1, PullRequestEntry(2, "ann", EntryKind.CLOSED), lambda _, record: record)
    assert (requests.find(1), len(requests.history(1))) == (added, 1)


def test_numbers_are_given_once_and_one_is_open_for_a_branch(requests: SqlPullRequests) -> None:
    refused: list[AlreadyExistsError] = []

    def work(number: int) -> None:
        add(requests, f"b{number}")
        try:
            add(requests, "same")
        except AlreadyExistsError as error:
            refused.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = requests.page(None, None, 99)
    assert [record.number for record in found] == list(range(AT_ONCE + 1, 0, -1))
    assert len(refused) == AT_ONCE - 1
    assert [r.number for r in requests.page(PullRequestState.OPEN, 4, 2)] == [3, 2]


def test_database_without_the_tables_has_none_and_is_left_as_it_is(tmp_path: Path) -> None:
    config = CatalogConfig(
        new_catalog_uri(tmp_path / "catalog.db"), f"file://{tmp_path}", "lake", {}, 10.0, create=True
    )
    catalog: Any = open_catalog(config)
    with catalog.store.database.writing() as connection:
        for table in (PULL_REQUESTS, PULL_REQUEST_HISTORY):
            table.drop(connection)
    requests = SqlPullRequests(catalog.store.database, "lake")
    assert requests.page(None, None, 9) == []
    with pytest.raises(NotFoundError):
        requests.find(1)
    catalog.close()
