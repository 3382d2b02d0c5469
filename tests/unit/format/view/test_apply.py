"""What updates make of a view."""

from typing import Any

import msgspec
import pytest

from bergline.errors import BerglineError, ConflictError, InvalidInputError, RefusedError, UnsupportedError
from bergline.format.metadata.updates import (
    AddSchema,
    AssignUuid,
    RemoveProperties,
    SetLocation,
    SetProperties,
    UpgradeFormatVersion,
)
from bergline.format.schema.schema import Schema
from bergline.format.types.types import LONG, NestedField
from bergline.format.view.apply import apply_view_updates
from bergline.format.view.updates import AddViewVersion, SetCurrentViewVersion, ViewUpdate
from bergline.format.view.view_metadata import SqlRepresentation, ViewLogEntry, ViewMetadata, ViewVersion

NOW = 1_700_000_100_000
SPARK, TRINO = SqlRepresentation("SELECT 3 AS n", "spark"), SqlRepresentation("SELECT 3 n", "TRINO")
LONGER = Schema((NestedField(1, "n", False, LONG),), schema_id=55)


def version(*queries: SqlRepresentation, schema_id: int = 1, version_id: int = 1) -> ViewVersion:
    return ViewVersion(
        version_id=version_id,
        timestamp_ms=NOW - 5,
        schema_id=schema_id,
        summary={},
        default_namespace=("db",),
        representations=queries or (SPARK, TRINO),
    )


def apply(base: ViewMetadata | None, *updates: ViewUpdate) -> ViewMetadata:
    return apply_view_updates(base, updates, now_ms=NOW)


def test_new_version_gets_the_next_id_and_the_time_it_was_made(view: ViewMetadata) -> None:
    after = apply(view, AddSchema(LONGER), AddViewVersion(version(schema_id=-1)), SetCurrentViewVersion(-1))
    assert (after.current_version_id, after.current_version.schema_id) == (3, 2)
    assert after.schema.fields == LONGER.fields
    assert after.version_log == (*view.version_log, ViewLogEntry(NOW - 5, 3))
    assert view.current_version_id == 2


def test_version_made_current_again_is_logged_at_the_time_of_the_change(view: ViewMetadata) -> None:
    base = apply(view, SetProperties({"replace.drop-dialect.allowed": "TRUE"}))
    after = apply(base, SetCurrentViewVersion(1))
    assert after.current_version_id == 1
    assert after.version_log[-1] == ViewLogEntry(NOW, 1)


def test_equal_version_and_equal_schema_are_reused(view: ViewMetadata) -> None:
    again = msgspec.structs.replace(view.current_version, version_id=9, timestamp_ms=NOW, schema_id=-1)
    same_schema = msgspec.structs.replace(view.schema, schema_id=77)
    after = apply(view, AddSchema(same_schema), AddViewVersion(again), SetCurrentViewVersion(-1))
    assert after == view


def test_version_keeps_an_id_above_the_known_ones(view: ViewMetadata) -> None:
    assert apply(view, AddViewVersion(version(version_id=7))).versions[-1].version_id == 7


def test_only_the_last_choice_of_a_change_set_is_logged(view: ViewMetadata) -> None:
    one, two = version(), version(SPARK, TRINO, SqlRepresentation("x", "duckdb"))
    after = apply(view, AddViewVersion(one), SetCurrentViewVersion(-1), AddViewVersion(two), SetCurrentViewVersion(-1))
    assert [e.version_id for e in after.version_log] == [1, 2, 4]


def test_current_version_chosen_again_is_not_logged(view: ViewMetadata) -> None:
    assert apply(view, SetCurrentViewVersion(2)) == view


def test_view_is_made_from_nothing() -> None:
    made = apply(
        None,
        AssignUuid("u"),
        UpgradeFormatVersion(1),
        SetLocation("memory:/v"),
        SetProperties({"a": "1", "b": "2"}),
        RemoveProperties(("b", "c")),
        AddSchema(LONGER),
        AddViewVersion(version(schema_id=-1, version_id=1)),
        SetCurrentViewVersion(-1),
    )
    assert (made.view_uuid, made.location, made.properties) == ("u", "memory:/v", {"a": "1"})
    assert (made.current_version_id, made.schema.schema_id) == (1, 0)
    assert made.version_log == (ViewLogEntry(NOW - 5, 1),)


@pytest.mark.parametrize("kept", [[4], [4, 3], [4, 3, 2]])
def test_history_is_kept_short_without_holes(view: ViewMetadata, kept: list[int]) -> None:
    base = apply(view, AddViewVersion(version()), SetCurrentViewVersion(-1))
    new = version(SPARK, TRINO, SqlRepresentation("x", "duckdb"))
    after = apply(
        base,
        SetProperties({"version.history.num-entries": str(len(kept))}),
        AddViewVersion(new),
        SetCurrentViewVersion(-1),
    )
    assert [v.version_id for v in after.versions] == kept
    assert [e.version_id for e in after.version_log] == kept[::-1]


def test_current_version_is_kept_though_it_is_old_and_the_log_before_a_hole_goes(view: ViewMetadata) -> None:
    allowed = {"version.history.num-entries": "2", "replace.drop-dialect.allowed": "true"}
    base = apply(view, AddViewVersion(version()), SetCurrentViewVersion(-1))
    after = apply(base, SetProperties(allowed), SetCurrentViewVersion(1))
    assert [v.version_id for v in after.versions] == [1, 3]
    assert [e.version_id for e in after.version_log] == [3, 1]


def test_all_versions_added_now_are_kept(view: ViewMetadata) -> None:
    queries = [SqlRepresentation(f"SELECT {n}", "spark") for n in range(5)]
    added = [AddViewVersion(version(q, TRINO)) for q in queries]
    limit = SetProperties({"version.history.num-entries": "1"})
    after = apply(view, limit, *added, SetCurrentViewVersion(-1))
    assert [v.version_id for v in after.versions] == [7, 6, 5, 4, 3]


def test_lost_dialect_is_refused_unless_allowed(view: ViewMetadata) -> None:
    updates = (AddViewVersion(version(SPARK)), SetCurrentViewVersion(-1))
    with pytest.raises(RefusedError, match="without its queries for trino"):
        apply(view, *updates)
    assert apply(view, SetProperties({"replace.drop-dialect.allowed": "true"}), *updates).current_version_id == 3


@pytest.mark.parametrize(
    ("updates", "kind", "message"),
    [
        ([AssignUuid("other")], ConflictError, "it never changes"),
        ([UpgradeFormatVersion(2)], UnsupportedError, "view format version 1, found 2"),
        ([AddViewVersion(version(schema_id=9))], InvalidInputError, r"schema of \[0, 1\], found 9"),
        ([AddViewVersion(version(schema_id=-1))], InvalidInputError, "schema added before it is chosen by -1"),
        ([SetCurrentViewVersion(9)], InvalidInputError, r"version of \[1, 2\], found 9"),
        ([SetCurrentViewVersion(-1)], InvalidInputError, "version added before it is chosen by -1"),
        (
            [AddViewVersion(version(SPARK, SqlRepresentation("y", "SPARK")))],
            InvalidInputError,
            r"one query per dialect, found \['spark', 'spark'\]",
        ),
        ([SetProperties({"version.history.num-entries": "0"})], InvalidInputError, "above 0"),
        ([SetProperties({"version.history.num-entries": "x"})], InvalidInputError, "whole number"),
    ],
)
def test_update_that_cannot_be_applied(
    view: ViewMetadata, updates: list[ViewUpdate], kind: type[BerglineError], message: str
) -> None:
    with pytest.raises(kind, match=message):
        apply(view, *updates)


@pytest.mark.parametrize("missing", range(4))
def test_new_view_needs_uuid_location_and_version(missing: int) -> None:
    updates: list[Any] = [
        (AssignUuid("u"),),
        (SetLocation("x"),),
        (AddSchema(LONGER), AddViewVersion(version(schema_id=0))),
        (SetCurrentViewVersion(-1),),
    ]
    del updates[missing]
    with pytest.raises(InvalidInputError):
        apply(None, *(u for group in updates for u in group))


def test_same_uuid_in_any_case_changes_nothing(view: ViewMetadata) -> None:
    assert apply(view, AssignUuid(view.view_uuid.upper())) == view
