"""Statements that nobody runs on lake tables: they are refused with what to do instead."""

from bergline.errors import NotFoundError, UnsupportedError
from bergline.sql.names.resolve import Lakes
from bergline.sql.statements.statements import Name, OtherStatement

_INSTEAD = {
    "DELETE": "for now: `table.delete(filter)` in Python, or INSERT OVERWRITE with the rows that stay",
    "UPDATE": "for now: `table.overwrite(rows, filter)` in Python, or INSERT … REPLACE WHERE with the new rows",
    "MERGE": "for now: `table.overwrite(rows, filter)` in Python, or INSERT OVERWRITE with a query that joins both",
    "TRUNCATE": "for now: INSERT OVERWRITE with a query that has no rows",
}


def check_not_of_lakes(statement: OtherStatement, lakes: Lakes) -> None:
    """Refuse statements on lake tables that we do not run, instead of letting the engine say "table not found"."""
    name = next((n for n in statement.tables if _names_table(n, lakes)), None)
    if statement.subject is not None and lakes.owns(statement.subject):
        name = statement.subject
    if name is None:
        return
    if statement.error is not None:
        raise statement.error
    lakes.resolve(name)
    raise UnsupportedError(
        f"cannot run {statement.keyword} with `{'.'.join(name)}` yet",
        hints=[_INSTEAD.get(statement.keyword, "docs/reference/statements.md lists what runs on lake tables")],
    )


def _names_table(name: Name, lakes: Lakes) -> bool:
    try:
        return lakes.resolve(name) is not None
    except NotFoundError:
        return False
