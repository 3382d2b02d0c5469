"""The other tables and views of a catalog, asked before files are deleted that one of them may use."""

from collections.abc import Iterator

from bergline.catalog.catalog import Catalog, LoadedTable, LoadedView
from bergline.catalog.identifiers import TableName
from bergline.errors import FormatError, NotFoundError, RefusedError, UnsupportedError
from bergline.table.listed_tables import every_table, load_listed


def other_tables(catalog: Catalog, name: TableName, doing: str) -> Iterator[LoadedTable]:
    """All tables but one; RefusedError, which says what is being done, if nobody can know what one of them uses."""
    for other in every_table(catalog):
        try:
            loaded = None if other == name else load_listed(catalog, other)
        except (NotFoundError, FormatError, UnsupportedError) as error:
            raise _unreadable(other, doing, error) from error
        if loaded:
            yield loaded


def every_view(catalog: Catalog, doing: str) -> Iterator[LoadedView]:
    """All views; RefusedError if one cannot be read."""
    for namespace in catalog.list_namespaces():
        for name in catalog.list_views(namespace):
            try:
                yield catalog.load_view(name)
            except (NotFoundError, FormatError, UnsupportedError) as error:
                if not (isinstance(error, NotFoundError) and error.kind != "file"):  # else dropped since it was listed
                    raise _unreadable(name, doing, error) from error


def _unreadable(name: TableName, doing: str, error: Exception) -> RefusedError:
    return RefusedError(
        f"cannot {doing}: what `{name}` uses cannot be read: {error}",
        hints=[f"unregister `{name}` if it is of no use any more"],
    )
