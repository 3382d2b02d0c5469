"""Messages in the wording of Java's catalogs."""

import pytest

from bergline.catalog.identifiers import TableName
from bergline.catalog.rest.protocol.messages import check_queries, failed_requirement, known_message, renamed_onto
from bergline.errors import AlreadyExistsError, BerglineError, InvalidInputError, NotFoundError
from bergline.format.metadata.requirements import (
    AssertCreate,
    AssertRefRetention,
    AssertRefSnapshotId,
    AssertTableUuid,
    Requirement,
)
from bergline.format.view.view_metadata import SqlRepresentation, ViewVersion


@pytest.mark.parametrize(
    ("error", "asked", "message"),
    [
        (NotFoundError("no table `db.t`", kind="table", name="db.t"), "table", "Table does not exist: db.t"),
        (
            NotFoundError("no table `db.t`: it is gone", kind="table", name="db.t"),
            "table",
            "Table does not exist: db.t; it is gone",
        ),
        (NotFoundError("x", kind="file", name="s3://b/x"), "table", "Failed to open input stream for file: s3://b/x"),
        (AlreadyExistsError("x", kind="table", name="db.t"), "table", "Table already exists: db.t"),
        (AlreadyExistsError("x", kind="view", name="db.t"), "table", "View with same name already exists: db.t"),
        (AlreadyExistsError("x", kind="namespace", name="db"), "table", "Namespace already exists: db"),
        (InvalidInputError("expected a name"), "table", "expected a name"),
    ],
)
def test_names_are_reported_as_java_does(error: BerglineError, asked: str, message: str) -> None:
    assert known_message(error, asked) == message


def test_rename_to_a_taken_name_names_both() -> None:
    error = renamed_onto(TableName(("db",), "a"), AlreadyExistsError("x", kind="view", name="db.b"))
    assert error.message == "Cannot rename db.a to db.b. View already exists"
    other = AlreadyExistsError("x", kind="request", name="k")
    assert renamed_onto(TableName(("db",), "a"), other) is other


def test_two_queries_in_one_dialect_are_refused() -> None:
    def version(*dialects: str) -> ViewVersion:
        queries = tuple(SqlRepresentation("SELECT 1", dialect) for dialect in dialects)
        return ViewVersion(
            version_id=1,
            timestamp_ms=0,
            schema_id=0,
            summary={},
            default_namespace=("db",),
            representations=queries,
        )

    check_queries(version("spark", "trino"))
    with pytest.raises(InvalidInputError, match="multiple queries for dialect spark"):
        check_queries(version("spark", "Spark"))


@pytest.mark.parametrize(
    ("requirement", "message"),
    [
        (AssertCreate(), "table already exists"),
        (AssertTableUuid("u"), "UUID does not match"),
        (AssertRefSnapshotId("main", 1), "branch main has changed"),
        (AssertRefRetention("main"), "retention of main has changed"),
    ],
)
def test_failed_requirement_says_what_changed(requirement: Requirement, message: str) -> None:
    assert failed_requirement(requirement) == f"Requirement failed: {message}"
