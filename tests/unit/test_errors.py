"""The error tree, its codes and its hints."""

import pickle
import re
import time

import pytest

import bergline.errors
from bergline.errors import (
    AlreadyExistsError,
    BerglineError,
    CommitUnknownError,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    ProtectedRefError,
    SqlSyntaxError,
    TablesRefusedError,
    near_names,
)


def all_errors() -> list[type[BerglineError]]:
    return [c for c in vars(bergline.errors).values() if isinstance(c, type) and issubclass(c, BerglineError)]


def drawn_tree() -> dict[str, str | None]:
    """Child to parent, read from the lines of the docstring's drawing."""
    parents: dict[str, str | None] = {}
    path: list[str] = []
    for line in (bergline.errors.__doc__ or "").splitlines():
        if match := re.match(r"^(?P<branch>[│├└─ ]*)(?P<name>\w+Error)\b", line):
            depth = len(match["branch"]) // 4
            path = [*path[:depth], match["name"]]
            parents[match["name"]] = path[-2] if depth else None
    return parents


def test_tree_in_docstring_is_the_real_tree() -> None:
    real = {c.__name__: c.__base__.__name__ if c is not BerglineError else None for c in all_errors()}
    assert drawn_tree() == real


def test_every_class_has_its_own_code() -> None:
    codes = [c.code for c in all_errors()]
    assert len(set(codes)) == len(codes)
    assert all("code" in vars(c) for c in all_errors())


def test_codes_stay_as_published() -> None:
    assert {c.__name__: c.code for c in all_errors()} == {
        "BerglineError": "error",
        "ConflictError": "conflict",
        "CommitUnknownError": "commit-unknown",
        "NotFoundError": "not-found",
        "AlreadyExistsError": "already-exists",
        "InvalidInputError": "invalid-input",
        "SqlSyntaxError": "sql-syntax",
        "FormatError": "format",
        "UnsupportedError": "unsupported",
        "AuthenticationError": "authentication",
        "RefusedError": "refused",
        "NotEmptyError": "not-empty",
        "ProtectedRefError": "protected-ref",
        "TablesRefusedError": "tables-refused",
        "UnavailableError": "unavailable",
        "StorageError": "storage",
        "MetadataChangedError": "metadata-changed",
    }


def test_invalid_input_is_a_value_error() -> None:
    assert issubclass(InvalidInputError, ValueError)


def test_hints_become_notes() -> None:
    error = ConflictError("moved", hints=["retry", "look"])
    assert str(error) == "moved"
    assert error.hints == ("retry", "look")
    assert error.__notes__ == ["hint: retry", "hint: look"]


def test_not_found_suggests_near_names() -> None:
    error = NotFoundError("no ref", kind="ref", name="mian", known=["main", "audit"], hints=["list them"])
    assert error.near == ("main",)
    assert error.hints == ("list them", "did you mean `main`?")


def test_not_found_without_near_names_suggests_nothing() -> None:
    error = NotFoundError("no ref", kind="ref", name="zzz", known=["main"])
    assert error.near == ()
    assert error.hints == ()


def test_names_that_share_a_word_are_not_near() -> None:
    assert near_names("etl-main", ["main"]) == ()
    assert near_names("mian", ["main"]) == ("main",)


def test_near_names_ignore_case_and_keep_spelling() -> None:
    assert near_names("REGION", ["Region", "id"]) == ("Region",)


def test_near_names_are_at_most_three_best_first() -> None:
    found = near_names("branch", ["branch1", "branch12", "branch123", "branch1234"])
    assert found == ("branch1", "branch12", "branch123")


def test_sql_syntax_error_names_line_and_column() -> None:
    error = SqlSyntaxError("unexpected `)`", line=2, column=7)
    assert str(error) == "unexpected `)` at line 2, column 7"
    assert (error.line, error.column) == (2, 7)


def test_refusal_of_several_tables_tells_each_reason_and_each_hint_once() -> None:
    reasons = {"db.a": ConflictError("moved", hints=["look"]), "db.b": InvalidInputError("empty", hints=["look"])}
    error = TablesRefusedError("cannot tag", reasons=reasons)
    assert str(error) == "cannot tag\n  `db.a`: moved\n  `db.b`: empty"
    assert (error.hints, error.reasons) == (("look",), reasons)
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert {table: str(reason) for table, reason in copy.reasons.items()} == {"db.a": "moved", "db.b": "empty"}


@pytest.mark.parametrize(
    "error",
    [
        ConflictError("a", hints=["b"]),
        CommitUnknownError("a", table="t", metadata_location=None),
        NotFoundError("a", kind="ref", name="mian", known=["main"]),
        AlreadyExistsError("a", kind="table", name="t"),
        SqlSyntaxError("a", line=1, column=2),
        TablesRefusedError("a", reasons={}),
        ProtectedRefError("a", table="db.orders", ref="main", rule="*", hints=["b"]),
    ],
    ids=lambda e: type(e).__name__,
)
def test_errors_survive_a_process_boundary(error: BerglineError) -> None:
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


def test_near_name_is_found_among_very_many_in_no_time() -> None:
    known = [f"db.customer_orders_daily_{n:05d}" for n in range(20_000)]
    began = time.thread_time()
    assert near_names("DB.customer_orders_daily_12345x", known)[0] == "db.customer_orders_daily_12345"
    assert time.thread_time() - began < 1
