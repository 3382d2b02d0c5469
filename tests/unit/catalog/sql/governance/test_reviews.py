"""Checks and approvals of snapshots, in SQLite and PostgreSQL."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bergline.catalog.identifiers import TableName
from bergline.catalog.protection.decision import HeadReview
from bergline.catalog.sql.governance.reviews import RecordedReview, ReviewedTable, ReviewKind, ReviewState, SqlReviews
from bergline.lake.opening import CatalogConfig, open_catalog

TABLE = ReviewedTable(TableName(("db",), "a"), "u-1")
CHECK = RecordedReview(7, ReviewKind.CHECK, "nulls", ReviewState.PASSED, "ci", 1, "0 of 10")
APPROVAL = RecordedReview(7, ReviewKind.APPROVAL, "ann", ReviewState.APPROVED, "ann", 2)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.server)])
def reviews(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqlReviews]:
    uri = f"sqlite:///{tmp_path}/catalog.db" if request.param == "sqlite" else request.getfixturevalue("postgres")
    name = f"reviews-{tmp_path.name}"
    catalog: Any = open_catalog(CatalogConfig(uri, f"file://{tmp_path}", name, {}, 10.0, (), 10**6, True))
    yield SqlReviews(catalog.store.database, name)
    catalog.close()


def test_review_belongs_to_one_snapshot_of_one_table(reviews: SqlReviews) -> None:
    reviews.record(TABLE, CHECK)
    reviews.record(TABLE, APPROVAL)
    assert reviews.of(TABLE, 7) == (APPROVAL, CHECK)
    assert reviews.head_review(TABLE, 7) == HeadReview(frozenset({"nulls"}), frozenset({"ann"}))
    assert reviews.head_review(TABLE, 8) == HeadReview()
    for other in (ReviewedTable(TABLE.name, "u-2"), ReviewedTable(TableName(("db",), "b"), TABLE.uuid)):
        assert reviews.head_review(other, 7) == HeadReview()


def test_latest_word_counts(reviews: SqlReviews) -> None:
    reviews.record(TABLE, CHECK)
    reviews.record(TABLE, APPROVAL)
    reviews.record(TABLE, msgspec.structs.replace(CHECK, state=ReviewState.FAILED))
    reviews.record(TABLE, msgspec.structs.replace(APPROVAL, state=ReviewState.WITHDRAWN, at_ms=3))
    assert reviews.head_review(TABLE, 7) == HeadReview()
    assert [r.state for r in reviews.of(TABLE, 7)] == ["withdrawn", "failed"]
