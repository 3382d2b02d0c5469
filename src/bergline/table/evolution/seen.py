"""What a caller saw of a table, against the table that a change is worked out on: the same columns, or a conflict."""

import contextlib
from collections.abc import Iterator

from bergline.catalog.conflicts import describe_layout_change
from bergline.errors import AlreadyExistsError, ConflictError, InvalidInputError, NotFoundError
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.schema.schema import Schema


@contextlib.contextmanager
def conflict_if_refused(seen: TableMetadata, base: TableMetadata) -> Iterator[None]:
    """A change that was right for what the caller saw, and is refused by what is there now, lost against another."""
    try:
        yield
    except (NotFoundError, AlreadyExistsError, InvalidInputError) as error:
        raise conflict(str(error), seen, base) from error


def conflict(reason: str, seen: TableMetadata, base: TableMetadata) -> ConflictError:
    """The error that says what stands against a change, and who came first."""
    return ConflictError(
        f"{reason}; {describe_layout_change(seen, base)}",
        hints=["look at the table again, then decide"],
    )


def is_settled(column_id: int, seen: TableMetadata, base: TableMetadata) -> bool:
    """Whether the base knows a column that the caller saw by its id.

    Columns that the same transaction added before have other ids on another base: they are known by their names.
    """
    name = seen.schema.names_by_id.get(column_id)
    return name is not None and any(s.names_by_id.get(column_id) == name for s in base.schemas)


def check_same_column(path: str, mine: Schema, theirs: Schema, seen: TableMetadata, base: TableMetadata) -> None:
    """Refuse a column that is gone, or has another name, since the caller saw it; `mine` and `theirs` so far."""
    column_id = mine.find(path).id
    if not is_settled(column_id, seen, base):
        return
    if column_id not in theirs.ids:
        raise conflict(f"column `{path}` was dropped", seen, base)
    now = theirs.names_by_id[column_id]
    if now != mine.names_by_id[column_id]:
        raise conflict(f"column `{path}` was renamed to `{now}`", seen, base)
