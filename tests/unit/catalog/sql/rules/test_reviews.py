"""Checks and approvals of snapshots, in SQLite and PostgreSQL."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bergline.catalog.identifiers import TableName
from bergline.catalog.protection.decision import HeadReview
from bergline.catalog.sql.rules.reviews import RecordedReview, ReviewedTable, ReviewKind, ReviewState, SqlReviews
from bergline.catalog.sql.security_layout import REVIEWS
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
    assert reviews.of(TABLE, 7, "main") == (APPROVAL, CHECK)
    assert reviews.head_review(TABLE, 7, "main") == HeadReview(frozenset({"nulls"}), frozenset({"ann"}))
    assert reviews.head_review(TABLE, 8, "main") == HeadReview()
    for other in (ReviewedTable(TABLE.name, "u-2"), ReviewedTable(TableName(("db",), "b"), TABLE.uuid)):
        assert reviews.head_review(other, 7, "main") == HeadReview()


def test_latest_word_counts(reviews: SqlReviews) -> None:
    reviews.record(TABLE, CHECK)
    reviews.record(TABLE, APPROVAL)
    reviews.record(TABLE, msgspec.structs.replace(CHECK, state=ReviewState.FAILED))
    reviews.record(TABLE, msgspec.structs.replace(APPROVAL, state=ReviewState.WITHDRAWN, at_ms=3))
    assert reviews.head_review(TABLE, 7, "main") == HeadReview()
    assert [r.state for r in reviews.of(TABLE, 7, "main")] == ["withdrawn", "failed"]


def test_review_counts_for_the_ref_for_which_it_was_given(reviews: SqlReviews) -> None:
    for review in (CHECK, APPROVAL):
        reviews.record(TABLE, msgspec.structs.replace(review, target="load/b"))
    assert reviews.head_review(TABLE, 7, "load/b") == HeadReview(frozenset({"nulls"}), frozenset({"ann"}))
    for other in ("main", "load", "*", ""):
        assert reviews.of(TABLE, 7, other) == ()
        assert reviews.head_review(TABLE, 7, other) == HeadReview()


def test_branch_named_like_a_pattern_is_one_branch(reviews: SqlReviews) -> None:
    reviews.record(TABLE, msgspec.structs.replace(APPROVAL, target="*"))
    assert reviews.head_review(TABLE, 7, "main") == HeadReview()


def test_check_that_failed_for_a_ref_or_for_all_did_not_pass_there(reviews: SqlReviews) -> None:
    reviews.record(TABLE, CHECK)
    reviews.record(TABLE, msgspec.structs.replace(CHECK, target="main", state=ReviewState.FAILED))
    assert reviews.head_review(TABLE, 7, "main") == HeadReview()
    assert reviews.head_review(TABLE, 7, "dev") == HeadReview(frozenset({"nulls"}))
    reviews.record(TABLE, msgspec.structs.replace(CHECK, state=ReviewState.PENDING))
    reviews.record(TABLE, msgspec.structs.replace(CHECK, target="main"))
    assert reviews.head_review(TABLE, 7, "main") == HeadReview()


def test_nothing_is_on_record_in_a_database_without_the_table(reviews: SqlReviews) -> None:
    database: Any = reviews._database
    if database.engine.dialect.name != "sqlite":
        pytest.skip("the database is shared by tests")
    reviews.record(TABLE, APPROVAL)
    with database.writing() as connection:
        REVIEWS.drop(connection)
    assert reviews.of(TABLE, 7, "main") == ()
