"""The pointer store interface."""

from bergline.catalog.identifiers import TableName
from bergline.catalog.pointer.memory import MemoryPointerStore
from bergline.catalog.pointer.pointer_store import (
    CATALOG,
    CATALOG_NAME,
    CREATE_HINT,
    NOTHING_CHANGED,
    NeighbouringNames,
    PointerSwap,
    StagedPointers,
    missing_catalog,
)
from bergline.errors import CommitUnknownError, StorageError, UnavailableError


def test_certain_errors_are_an_allow_list() -> None:
    assert issubclass(UnavailableError, NOTHING_CHANGED)
    assert not issubclass(StorageError, NOTHING_CHANGED)
    assert not issubclass(CommitUnknownError, NOTHING_CHANGED)
    assert not issubclass(Exception, NOTHING_CHANGED)


def test_optional_abilities_are_recognized_by_their_methods() -> None:
    class Staging(MemoryPointerStore):
        def stage(self, table: TableName, expected: str | None, data: bytes) -> str:
            return f"{table}{expected}{data!r}"

    assert isinstance(Staging(), StagedPointers)
    assert not isinstance(MemoryPointerStore(), StagedPointers | NeighbouringNames)


def test_missing_catalog_says_how_to_create_it() -> None:
    error = missing_catalog("no catalog at x", "x")
    assert (error.kind, error.name, error.hints) == (CATALOG, "x", (CREATE_HINT,))
    error = missing_catalog("no catalog `lke`", "lke", kind=CATALOG_NAME, known=["lake"])
    assert error.near == ("lake",)


def test_swap_of_a_name_that_must_be_free_expects_none() -> None:
    name = TableName(("db",), "t")
    assert PointerSwap(name, None, "a") != PointerSwap(name, "", "a")
