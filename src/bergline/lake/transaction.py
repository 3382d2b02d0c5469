"""`lake.transaction()`: several tables, of which all pointers move or none."""

from typing import NoReturn

from bergline.arguments import shown
from bergline.catalog.catalog import Catalog
from bergline.catalog.identifiers import TableName, parse_table_name
from bergline.errors import InvalidInputError, UnsupportedError
from bergline.table.commits.retry import Timing
from bergline.table.table import Table
from bergline.table.transaction import Transaction


class LakeTransaction:
    """Tables as a block changes them."""

    def __init__(self, catalog: Catalog, timing: Timing, transaction: Transaction) -> None:
        self._catalog = catalog
        self._timing = timing
        self._transaction = transaction
        self._tables: dict[TableName, Table] = {}

    def load_table(self, name: str | TableName) -> Table:
        """A table with the changes of this transaction; the same handle whenever it is asked for.

        UnsupportedError for a second table where the catalog cannot move several at once.
        """
        key = parse_table_name(name)
        if self._transaction.has_ended:
            raise InvalidInputError(f"expected an open transaction, found one that has ended, for table `{key}`")
        if key not in self._tables:
            loaded = self._catalog.load_table(key)
            chain = self._transaction.chain(loaded)
            self._tables[key] = Table(self._catalog, loaded, timing=self._timing, chain=chain)
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
