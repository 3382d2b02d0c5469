"""The other tables and views of a catalog, asked before files are deleted that one of them may use.

Metadata may name files anywhere, wherever its own table lies: of one that cannot be read nobody knows what it uses.
"""

from collections.abc import Iterator

from bergline.catalog.catalog import Catalog, LoadedTable, LoadedView
from bergline.catalog.identifiers import TableName
from bergline.errors import (
    BerglineError,
    FormatError,
    NotFoundError,
    RefusedError,
    StorageError,
    UnavailableError,
    UnsupportedError,
)
from bergline.table.expiry.orphan_named import named_files
from bergline.table.listed_tables import every_table, load_listed

_TRIES = 10
_UNREADABLE = (NotFoundError, FormatError, UnsupportedError, RefusedError, StorageError)


def other_tables(catalog: Catalog, name: TableName, doing: str) -> Iterator[LoadedTable]:
    """All tables but one; RefusedError, which says what is being done, if nobody can know what one of them uses."""
    for other in every_table(catalog):
        if other != name and (loaded := _loaded(catalog, other, doing)):
            yield loaded


def files_of_other(catalog: Catalog, other: LoadedTable, doing: str) -> Iterator[str]:
    """Every location that another table names, some twice; RefusedError if any of its metadata cannot be read."""
    table = other
    for _ in range(_TRIES):
        try:
            yield from named_files(catalog.io, table)
        except _UNREADABLE as error:
            newest = _loaded(catalog, other.name, doing)
            if newest is None:  # dropped meanwhile
                return
            if newest.metadata_location == table.metadata_location:
                raise _unreadable(other.name, doing, error) from error
            table = newest  # it moved on, and expiry was allowed to delete the file
        else:
            return
    raise UnavailableError(f"table `{other.name}` moved on each of {_TRIES} times that its files were looked for")


def every_view(catalog: Catalog, doing: str) -> Iterator[LoadedView]:
    """All views; RefusedError if one cannot be read."""
    for namespace in catalog.list_namespaces():
        try:
            names = catalog.list_views(namespace)
        except NotFoundError:  # dropped since it was listed
            continue
        for name in names:
            try:
                yield catalog.load_view(name)
            except _UNREADABLE as error:
                if not (isinstance(error, NotFoundError) and error.kind != "file"):  # else dropped since it was listed
                    raise _unreadable(name, doing, error) from error


def _loaded(catalog: Catalog, name: TableName, doing: str) -> LoadedTable | None:
    try:
        return load_listed(catalog, name)
    except _UNREADABLE as error:
        raise _unreadable(name, doing, error) from error


def _unreadable(name: TableName, doing: str, error: BerglineError) -> RefusedError:
    way_out = f"have `{name}` readable again, or drop it without purging it if it is of no use any more"
    return RefusedError(
        f"cannot {doing}: what `{name}` uses cannot be read: {error}",
        hints=[*error.hints, way_out],
    )
