"""Errors of the protocol in both directions."""

import inspect

import pytest

import bergline.errors
from bergline.catalog.rest.protocol.errors import ERRORS, ErrorRow, error_of, row_of
from bergline.errors import (
    AuthenticationError,
    BerglineError,
    ConflictError,
    FormatError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    SqlSyntaxError,
    StorageError,
    UnavailableError,
    UnsupportedError,
)

ALL = [c for c in vars(bergline.errors).values() if inspect.isclass(c) and issubclass(c, BerglineError)]


@pytest.mark.parametrize("row", ERRORS, ids=lambda row: row.type)
def test_every_row_comes_back_as_the_same_error(row: ErrorRow) -> None:
    error = error_of(row.status, row.type, "why", name="db.orders")
    assert type(error) is row.error
    assert str(error) == "why"
    said = row_of(error)
    assert said.error is row.error
    assert said.kind == row.kind


@pytest.mark.parametrize("kind", ALL, ids=lambda c: c.__name__)
def test_every_error_has_a_row(kind: type[BerglineError]) -> None:
    rows = [row for row in ERRORS if issubclass(kind, row.error)]
    assert rows or kind is BerglineError


def test_kinds_of_names_have_types_of_their_own() -> None:
    assert row_of(NotFoundError("x", kind="view", name="v")).type == "NoSuchViewException"
    assert row_of(NotFoundError("x", kind="snapshot", name="1")).type == "NotFoundException"
    assert row_of(SqlSyntaxError("x", line=1, column=1)).status == 400
    assert row_of(BerglineError("x")).status == 500


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, InvalidInputError),
        (401, AuthenticationError),
        (403, RefusedError),
        (404, NotFoundError),
        (405, UnsupportedError),
        (409, ConflictError),
        (413, InvalidInputError),
        (419, AuthenticationError),
        (422, InvalidInputError),
        (429, UnavailableError),
        (500, StorageError),
        (501, UnsupportedError),
        (502, StorageError),
        (503, UnavailableError),
        (504, StorageError),
    ],
)
def test_status_alone_will_do(status: int, error: type[BerglineError]) -> None:
    assert type(error_of(status, None, "why", name="n")) is error
    assert type(error_of(status, "SomethingOfAnotherServer", "why", name="n")) is error


def test_broken_bytes_are_told_from_broken_calls() -> None:
    assert row_of(FormatError("x")).status == 422
    assert type(error_of(422, "FormatException", "x", name="n")) is FormatError
