"""Methods that parts carry out: called and documented like methods of the class itself."""

import inspect
from typing import Self

import pytest

from bergline.lake import Lake
from bergline.table.delegation import chained, delegated
from bergline.table.files import TableFiles
from bergline.table.maintenance import TableMaintenance
from bergline.table.metadata_updates import TableMetadataUpdates
from bergline.table.table import Table
from bergline.table.writes import TableWrites


class Counter:
    def __init__(self, counts: list[int]) -> None:
        self._counts = counts

    def add(self, number: int, *, times: int = 1) -> None:
        """Add a number some times."""
        self._counts.extend([number] * times)

    def total(self) -> int:
        """The sum."""
        return sum(self._counts)


class Account:
    def __init__(self) -> None:
        self._handle: list[int] = []

    add = chained(Counter, Counter.add)
    total = delegated(Counter, Counter.total)


def test_delegated_returns_what_the_part_returns_and_chained_the_object() -> None:
    account = Account()
    assert account.add(2, times=3).add(1) is account
    assert account.total() == 7


def test_signature_and_docstring_are_those_of_the_part() -> None:
    assert str(inspect.signature(Account.add)) == "(self, number: int, *, times: int = 1) -> Self"
    assert Account.add.__annotations__["return"] is Self
    assert (Account.add.__name__, Account.add.__doc__) == ("add", "Add a number some times.")
    assert inspect.signature(Account.total) == inspect.signature(Counter.total)


def test_wrong_arguments_are_refused_by_the_part() -> None:
    with pytest.raises(TypeError, match=r"Counter\.add\(\) got an unexpected keyword argument 'often'"):
        Account().add(1, often=2)  # type: ignore[call-arg]


@pytest.mark.parametrize("part", [TableWrites, TableFiles, TableMetadataUpdates, TableMaintenance])
def test_table_has_every_public_method_of_its_parts(part: type) -> None:
    for name, method in inspect.getmembers(part, inspect.isfunction):
        if not name.startswith("_"):
            assert inspect.unwrap(getattr(Table, name)) is method


@pytest.mark.parametrize("owner", [Table, Lake])
def test_help_shows_real_signatures(owner: type) -> None:
    for name, method in inspect.getmembers(owner, inspect.isfunction):
        kinds = {p.kind for p in inspect.signature(method).parameters.values()}
        assert not kinds & {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD} or name == "__exit__"
