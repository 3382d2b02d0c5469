"""What is in a lake: namespaces, and tables with size, rows, last change and refs."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import msgspec

from bergline.catalog.identifiers import Namespace, TableName
from bergline.catalog.pointer.pointer_store import FoundNames
from bergline.catalog.sql.records import find_sql_store
from bergline.errors import BerglineError, NotFoundError
from bergline.lake.lake import Lake
from bergline.reports.found_table import find_table
from bergline.reports.problem import Problem, attempt, problem_of
from bergline.reports.totals import Totals, totals_of

_READERS = 16
_MOST_VIEWS = 100_000


class TableLine(msgspec.Struct, frozen=True):
    """A table in a list; without figures where it cannot be loaded."""

    name: TableName
    totals: Totals = Totals()
    """Those of `main`."""
    last_updated_ms: int | None = None
    branches: int = 0
    tags: int = 0
    snapshots: int = 0
    format_version: int | None = None
    problem: Problem | None = None
    is_gone: bool = False
    """Whether there is no such table, by now or at the ref of the lake."""


class LakeOverview(msgspec.Struct, frozen=True):
    """Some of the tables of a lake, in the order of their names."""

    namespaces: tuple[Namespace, ...]
    tables: tuple[TableLine, ...]
    views: tuple[TableName, ...]
    matching: int
    """How many tables match, of which some are shown."""
    offset: int
    problems: tuple[Problem, ...]


def lake_overview(
    lake: Lake, *, search: str = "", namespace: Namespace | None = None, offset: int = 0, limit: int = 100
) -> LakeOverview:
    """The tables whose names contain all words of a search, in a namespace or in all; only those shown are loaded."""
    problems: list[Problem] = []
    namespaces = attempt(problems, "the namespaces", lake.catalog.list_namespaces) or []
    words = search.casefold().split()
    found = _searched(lake, words, namespace, (offset, limit), problems)
    if found is None:
        found = _listed(lake, words, namespaces if namespace is None else [namespace], (offset, limit), problems)
    tables, views = found
    with ThreadPoolExecutor(_READERS) as pool:
        lines = tuple(pool.map(lambda name: table_line(lake, name), tables.names))
    return LakeOverview(tuple(sorted(namespaces)), lines, tuple(views.names), tables.matching, offset, tuple(problems))


def table_line(lake: Lake, name: TableName) -> TableLine:
    """The line of a table; if it cannot be loaded, or is gone by now, the line says why."""
    try:
        found = find_table(lake, name)
    except BerglineError as error:
        return TableLine(name, problem=problem_of(f"table `{name}`", error), is_gone=isinstance(error, NotFoundError))
    if found.table is None:
        return TableLine(name, problem=found.problem)
    metadata = found.table.metadata
    branches = sum(ref.is_branch for ref in metadata.refs.values())
    return TableLine(
        name,
        totals_of(metadata.current_snapshot),
        metadata.last_updated_ms,
        branches,
        len(metadata.refs) - branches,
        len(metadata.snapshots),
        metadata.format_version,
    )


def _searched(
    lake: Lake, words: list[str], namespace: Namespace | None, page: tuple[int, int], problems: list[Problem]
) -> tuple[FoundNames, FoundNames] | None:
    """The tables to show, and the views, found in the catalog's database; None without a database or the namespace."""
    catalog = lake.catalog
    tables = find_sql_store(catalog)
    if tables is None or (namespace is not None and not catalog.namespace_exists(namespace)):
        return None
    views = tables.views
    where = "" if namespace is None else f" of `{'.'.join(namespace)}`"
    found = attempt(problems, f"the tables{where}", partial(tables.search_names, words, namespace, *page))
    found_views: FoundNames | None = None
    if views is not None:
        search = partial(views.search_names, words, namespace, 0, _MOST_VIEWS)
        found_views = attempt(problems, f"the views{where}", search)
    return found or FoundNames([], 0), found_views or FoundNames([], 0)


def _listed(
    lake: Lake, words: list[str], namespaces: Iterable[Namespace], page: tuple[int, int], problems: list[Problem]
) -> tuple[FoundNames, FoundNames]:
    """The same, from all names in all namespaces."""
    tables: list[TableName] = []
    views: list[TableName] = []
    for one in sorted(namespaces):
        shown = ".".join(one)
        tables += attempt(problems, f"the tables of `{shown}`", partial(lake.catalog.list_tables, one)) or []
        views += attempt(problems, f"the views of `{shown}`", partial(_views, lake, one)) or []
    found, found_views = sorted(_matching(tables, words)), sorted(_matching(views, words))
    return FoundNames(found[page[0] :][: page[1]], len(found)), FoundNames(found_views, len(found_views))


def _views(lake: Lake, namespace: Namespace) -> list[TableName]:
    try:
        return lake.catalog.list_views(namespace)
    except BerglineError as error:
        if error.code == "unsupported":  # a catalog without views has none
            return []
        raise


def _matching(names: Iterable[TableName], words: list[str]) -> list[TableName]:
    return [name for name in names if all(word in str(name).casefold() for word in words)]
