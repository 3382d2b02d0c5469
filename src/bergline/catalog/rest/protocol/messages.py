"""Messages that start with the wording of Java's catalogs, which clients and their tests match."""

from collections import Counter
from typing import assert_never

from bergline.catalog.identifiers import TableName
from bergline.errors import AlreadyExistsError, BerglineError, InvalidInputError, NotFoundError
from bergline.format.metadata.requirements import (
    AssertCreate,
    AssertCurrentSchemaId,
    AssertDefaultSortOrderId,
    AssertDefaultSpecId,
    AssertLastAssignedFieldId,
    AssertLastAssignedPartitionId,
    AssertRefRetention,
    AssertRefSnapshotId,
    AssertTableUuid,
    Requirement,
)
from bergline.format.view.view_metadata import SqlRepresentation, ViewVersion

_NAMED = {"namespace", "table", "view"}


def known_message(error: BerglineError, asked: str) -> str:
    """An error's message, with Java's wording for names that are taken or do not exist.

    `asked` says whether a table or a view was requested: the other kind may have the name.
    """
    match error:
        case NotFoundError(kind="file", name=name):
            return f"Failed to open input stream for file: {name}"
        case NotFoundError(kind=kind, name=name) if kind in _NAMED:
            why = str(error).partition(f"`{name}`: ")[2]
            return f"{kind.capitalize()} does not exist: {name}" + (f"; {why}" if why else "")
        case AlreadyExistsError(kind=kind, name=name) if kind in _NAMED:
            other = "" if kind in {asked, "namespace"} else " with same name"
            return f"{kind.capitalize()}{other} already exists: {name}"
    return str(error)


def renamed_onto(source: TableName, error: AlreadyExistsError) -> AlreadyExistsError:
    """The error for a rename to a taken name; any other error unchanged."""
    if error.kind not in _NAMED:
        return error
    message = f"Cannot rename {source} to {error.name}. {error.kind.capitalize()} already exists"
    return AlreadyExistsError(message, kind="name", name=error.name)


def check_queries(version: ViewVersion) -> None:
    """Refuse two queries in the same dialect."""
    dialects = Counter(r.dialect.lower() for r in version.representations if isinstance(r, SqlRepresentation))
    for dialect, number in dialects.items():
        if number > 1:
            raise InvalidInputError(f"Invalid view version: Cannot add multiple queries for dialect {dialect}")


def failed_requirement(requirement: Requirement) -> str:
    """The message for a failed requirement, with what changed."""
    match requirement:
        case AssertCreate():
            what = "table already exists"
        case AssertTableUuid():
            what = "UUID does not match"
        case AssertRefSnapshotId(ref):
            what = f"branch {ref} has changed"
        case AssertRefRetention(ref):
            what = f"retention of {ref} has changed"
        case AssertLastAssignedFieldId():
            what = "last assigned field id changed"
        case AssertCurrentSchemaId():
            what = "current schema changed"
        case AssertLastAssignedPartitionId():
            what = "last assigned partition id changed"
        case AssertDefaultSpecId():
            what = "default partition spec changed"
        case AssertDefaultSortOrderId():
            what = "default sort order changed"
        case _:
            assert_never(requirement)
    return f"Requirement failed: {what}"
