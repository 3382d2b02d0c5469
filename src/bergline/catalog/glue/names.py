"""Names in AWS Glue: which can exist, and which new ones are allowed (those that every tool can read)."""

import re

from bergline.catalog.identifiers import Namespace, TableName
from bergline.errors import InvalidInputError, UnsupportedError

_NEW_DATABASE = re.compile(r"[a-z0-9_]{1,252}")
_NEW_TABLE = re.compile(r"[a-z0-9_]{1,255}")
_ANY_NAME = re.compile(r"[^\x00-\x1f\x7f]+")
_LONGEST = 255
_LONGEST_SHOWN = 300


def database_of(namespace: Namespace) -> str | None:
    """The Glue database of a namespace; None if there cannot be one."""
    return namespace[0] if len(namespace) == 1 and is_name(namespace[0]) else None


def is_name(name: str) -> bool:
    """Whether a name can exist in Glue, which lower-cases all names."""
    return bool(_ANY_NAME.fullmatch(name)) and name == name.lower() and len(name.encode(errors="replace")) <= _LONGEST


def check_new_namespace(namespace: Namespace, *, any_name: bool) -> str:
    """Validate the name of a new database."""
    if len(namespace) != 1:
        raise UnsupportedError(
            f"expected a namespace of one level like `db`, found `{'.'.join(namespace)}`: AWS Glue does not nest them"
        )
    _check(namespace[0], _NEW_DATABASE, 252, any_name=any_name)
    return namespace[0]


def check_new_table(table: TableName, *, any_name: bool) -> str:
    """Validate the name of a new table; its database exists already."""
    if database_of(table.namespace) is None:
        check_new_namespace(table.namespace, any_name=any_name)
    _check(table.name, _NEW_TABLE, 255, any_name=any_name)
    return table.name


def _check(name: str, rule: re.Pattern[str], longest: int, *, any_name: bool) -> None:
    if rule.fullmatch(name) or (any_name and is_name(name)):
        return
    raise InvalidInputError(
        f"expected a name of 1 to {longest} lowercase letters, digits and underscores for AWS Glue, "
        f"found `{name[:_LONGEST_SHOWN]}`"
    )
