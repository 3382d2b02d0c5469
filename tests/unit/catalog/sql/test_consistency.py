"""What in a catalog's database does not fit together, in SQLite and PostgreSQL."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bergline.catalog.identifiers import TableName
from bergline.catalog.sql.consistency import (
    ReviewedTables,
    SharedPointer,
    implicit_namespaces,
    reviewed_tables,
    shared_pointers,
)
from bergline.catalog.sql.rules.reviews import RecordedReview, ReviewedTable, ReviewKind, ReviewState, SqlReviews
from bergline.catalog.sql.sql_store import SqlPointerStore
from bergline.lake.opening import CatalogConfig, open_catalog

TABLE = ReviewedTable(TableName(("db",), "a"), "u-1")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.server)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqlPointerStore]:
    uri = f"sqlite:///{tmp_path}/catalog.db" if request.param == "sqlite" else request.getfixturevalue("postgres")
    name = f"consistency-{tmp_path.name}"
    catalog: Any = open_catalog(CatalogConfig(uri, f"file://{tmp_path}", name, {}, 10.0, (), 10**6, True))
    yield catalog.store
    catalog.close()


def test_what_does_not_fit_is_found(store: SqlPointerStore) -> None:
    store.create_namespace(("db",), {})
    for name, pointer in (("a", "one"), ("b", "one"), ("c", "two")):
        store.create(TableName(("db",), name), pointer)
    store.create(TableName(("implicit", "eu"), "d"), "three")
    reviews = SqlReviews(store.database, store.catalog_name)
    for snapshot_id in (1, 2):
        reviews.record(TABLE, RecordedReview(snapshot_id, ReviewKind.CHECK, "dq", ReviewState.PASSED, "ann", 1))
    where = store.database, store.catalog_name
    assert implicit_namespaces(*where) == ["implicit.eu"]
    assert shared_pointers(*where) == [SharedPointer("one", ("db.a", "db.b"))]
    assert reviewed_tables(*where) == [ReviewedTables("bergline_target_reviews", {"u-1": 2})]
