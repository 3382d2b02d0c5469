"""The tables of a change to several: named one by one, by their namespace, or by a ref."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

from bergline.arguments import shown
from bergline.catalog.catalog import Catalog
from bergline.catalog.identifiers import Namespace, TableName, parse_namespace, parse_table_name
from bergline.errors import FormatError, InvalidInputError, NotFoundError, RefusedError
from bergline.format.metadata.refs import SnapshotRef
from bergline.table.orphans.catalog_tables import every_table, load_listed

TableNames = Iterable[str | TableName]
_READERS = 8
_AT_ONCE = 256


def selected_tables(
    catalog: Catalog, tables: TableNames | None, namespace: str | Namespace | None
) -> tuple[TableName, ...]:
    """The named tables, or all in a namespace and below it; one of the two must be given."""
    if (tables is None) == (namespace is None):
        found = "neither" if tables is None else "both"
        raise InvalidInputError(f"expected either tables or a namespace, found {found}")
    if tables is not None:
        return named_tables(tables)
    below = parse_namespace(namespace or ())
    names = tuple(every_table(catalog, below))
    if not names:
        shown_name = ".".join(below)
        raise NotFoundError(f"no table in namespace `{shown_name}`", kind="table", name=shown_name)
    return names


def tables_with_ref(
    catalog: Catalog, ref: str, tables: TableNames | None, namespace: str | Namespace | None, known_refs: set[str]
) -> tuple[TableName, ...]:
    """The named tables, or all that have a ref, in a namespace and below it or in the whole lake.

    `known_refs` gets the names of all refs of the tables that were loaded.
    """
    if tables is None:
        return tuple(find_tables(catalog, ref, namespace, known_refs))
    if namespace is not None:
        raise InvalidInputError("expected either tables or a namespace, found both")
    if isinstance(tables, Mapping):
        raise InvalidInputError(f"expected a list of tables, found {shown(tables)}")
    return named_tables(tables)


def named_tables(tables: TableNames) -> tuple[TableName, ...]:
    """The named tables: at least one, and each only once."""
    if isinstance(tables, str | TableName) or not isinstance(tables, Iterable):
        raise InvalidInputError(f"expected a list of tables, found {shown(tables)}")
    names = tuple([parse_table_name(table) for table in tables])
    if not names:
        raise InvalidInputError("expected at least one table, found none")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InvalidInputError(f"expected each table once, found `{twice[0]}` twice")
    return names


def find_tables(
    catalog: Catalog,
    ref: str,
    namespace: str | Namespace | None = None,
    known_refs: set[str] | None = None,
    is_meant: Callable[[TableName], bool] = lambda _: True,
) -> Iterator[TableName]:
    """The tables that have a branch or tag, in a namespace and below it or in all; `known_refs` gets all refs.

    Other tables are not loaded.
    """
    for name, refs in refs_of_tables(catalog, namespace, is_meant):
        if known_refs is not None:
            known_refs.update(refs)
        if ref in refs:
            yield name


def refs_of_tables(
    catalog: Catalog,
    namespace: str | Namespace | None = None,
    is_meant: Callable[[TableName], bool] = lambda _: True,
    *,
    only_readable: bool = False,
) -> Iterator[tuple[TableName, dict[str, SnapshotRef]]]:
    """The tables in a namespace and below it or in all, with their refs; several are loaded at a time.

    With `only_readable`, tables whose metadata is broken or may not be read have none.
    """

    def refs(name: TableName) -> dict[str, SnapshotRef]:
        try:
            loaded = load_listed(catalog, name)
        except (FormatError, NotFoundError, RefusedError):
            if not only_readable:
                raise
            loaded = None
        return {} if loaded is None else loaded.metadata.refs

    names = filter(is_meant, every_table(catalog, () if namespace is None else parse_namespace(namespace)))
    with ThreadPoolExecutor(_READERS, thread_name_prefix="bergline-refs") as threads:
        while some := list(itertools.islice(names, _AT_ONCE)):
            yield from zip(some, threads.map(refs, some), strict=True)
