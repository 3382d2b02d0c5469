"""Opening and creating the tables of a lake, one by one or in a transaction of several."""

import contextlib
from collections.abc import Iterator
from typing import NoReturn

from bergline.arguments import shown
from bergline.catalog.catalog import LoadedTable
from bergline.catalog.identifiers import TableName, parse_table_name
from bergline.errors import InvalidInputError, UnsupportedError
from bergline.lake.handle import LakeHandle
from bergline.table.evolution.definition import TableDefinition, new_location
from bergline.table.table import Table
from bergline.table.transaction import Transaction


def open_table(lake: LakeHandle, loaded: LoadedTable) -> Table:
    """A loaded table as a user holds it."""
    return Table(lake.catalog, loaded, timing=lake.timing)


def create_table(lake: LakeHandle, name: TableName, definition: TableDefinition) -> Table:
    """Create an empty table."""
    location = new_location(lake.catalog, name, definition.location)
    return open_table(lake, lake.catalog.create_table(name, definition.new_table(location, lake.timing.clock_ms())))


@contextlib.contextmanager
def transaction(lake: LakeHandle) -> Iterator["LakeTransaction"]:
    """Tables that a block changes, committed in one step when it ends."""
    with Transaction(lake.catalog, lake.timing) as transaction:
        yield LakeTransaction(lake, transaction)


class LakeTransaction:
    """Tables that a block changes."""

    def __init__(self, lake: LakeHandle, transaction: Transaction) -> None:
        self._lake = lake
        self._transaction = transaction
        self._tables: dict[TableName, Table] = {}

    def load_table(self, name: str | TableName) -> Table:
        """A table with the changes of this transaction; the same handle at every call.

        UnsupportedError for a second table where the catalog cannot move several at once.
        """
        key = parse_table_name(name)
        if self._transaction.has_ended:
            raise InvalidInputError(f"expected an open transaction, found one that has ended, for table `{key}`")
        if key not in self._tables:
            loaded = self._lake.catalog.load_table(key)
            chain = self._transaction.chain(loaded)
            self._tables[key] = Table(self._lake.catalog, loaded, timing=self._lake.timing, chain=chain)
        return self._tables[key]

    def create_table(self, name: str | TableName, *_: object, **__: object) -> NoReturn:
        """Refused: a new table is staged by itself."""
        raise _not_here(name, "create")

    def stage_table(self, name: str | TableName, *_: object, **__: object) -> NoReturn:
        """Refused: a new table is staged by itself."""
        raise _not_here(name, "stage")


def _not_here(name: object, what: str) -> UnsupportedError:
    return UnsupportedError(
        f"cannot {what} table {shown(name)} in a transaction of several tables",
        hints=["stage it by itself: `with lake.stage_table(…) as table:` creates it with its first rows"],
    )
