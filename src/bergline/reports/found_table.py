"""A table as far as it can be loaded, because reports include tables with broken metadata."""

import msgspec

from bergline.catalog.identifiers import TableName
from bergline.errors import AuthenticationError, BerglineError, NotFoundError, RefusedError
from bergline.lake.lake import Lake
from bergline.reports.problem import Problem, problem_of
from bergline.table.table import Table


class FoundTable(msgspec.Struct, frozen=True):
    """A table of the catalog: either it was loaded, or there is a problem."""

    name: TableName
    metadata_location: str | None
    """Where its metadata is; None if the catalog does not say."""
    table: Table | None
    problem: Problem | None


def find_table(lake: Lake, name: TableName) -> FoundTable:
    """Load a table; NotFoundError if the catalog has no such table, or the caller may not see it."""
    try:
        table = lake.load_table(name)
    except (AuthenticationError, RefusedError):
        raise
    except BerglineError as error:
        if isinstance(error, NotFoundError) and error.kind == "table":
            raise
        problem = problem_of(f"table `{name}`", error)
        return FoundTable(name, _pointer(lake, name, error), None, problem)
    return FoundTable(name, table.metadata_location, table, None)


def _pointer(lake: Lake, name: TableName, loading: BerglineError) -> str | None:
    try:
        return lake.catalog.pointer(name)
    except NotFoundError:
        raise loading from None
    except BerglineError:
        return None
