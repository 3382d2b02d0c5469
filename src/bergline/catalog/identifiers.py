"""Names of namespaces and tables."""

import msgspec

from bergline.arguments import check_list, check_text
from bergline.errors import InvalidInputError

MAX_NAME_LENGTH = 255
_LONGEST, _MOST_LEVELS = 8192, 1024  # longer than any catalog allows
_EXAMPLE = "a namespace like `db`"

Namespace = tuple[str, ...]


class TableName(msgspec.Struct, frozen=True, order=True):
    """A table's or view's namespace and name."""

    namespace: Namespace
    name: str

    def __str__(self) -> str:
        return ".".join((*self.namespace, self.name))


def parse_table_name(text: str | TableName) -> TableName:
    """`db.orders` as a table name; the last part is the table."""
    _check_size(text)
    if isinstance(text, TableName):
        parts = (*check_list(text.namespace, "namespace part"), check_text(text.name, "text for the table's name"))
    else:
        parts = tuple(check_text(text, "a table name like `db.orders`").split("."))
    if len(parts) < 2 or not _are_names(parts):  # noqa: PLR2004
        raise InvalidInputError(f"expected a table name like `db.orders`, found `{text}`")
    return TableName(parts[:-1], parts[-1])


def parse_namespace(text: str | Namespace) -> Namespace:
    """`db` or `db.raw` as a namespace."""
    _check_size(text)
    if isinstance(text, tuple | list):
        parts = check_list(text, "namespace part")
    else:
        parts = tuple(check_text(text, _EXAMPLE).split("."))
    if not parts or not _are_names(parts):
        raise InvalidInputError(f"expected {_EXAMPLE}, found `{text}`")
    return parts


def check_lengths(*names: str) -> None:
    """Refuse names that the shared SQL layout would truncate."""
    for name in names:
        if len(name) > MAX_NAME_LENGTH:
            raise InvalidInputError(f"expected a name of up to {MAX_NAME_LENGTH} characters, found {len(name)}")


def _check_size(text: object) -> None:
    """Refuse a name that is far too long, before doing anything else with it."""
    parts = (*text.namespace, text.name) if isinstance(text, TableName) else text
    if isinstance(parts, tuple | list):
        if len(parts) > _MOST_LEVELS:
            raise InvalidInputError(f"expected a name of up to {_MOST_LEVELS} levels, found {len(parts)}")
        size = sum(len(part) for part in parts if isinstance(part, str))
    else:
        size = len(parts) if isinstance(parts, str) else 0
    if size > _LONGEST:
        raise InvalidInputError(f"expected a name of up to {_LONGEST} characters, found {size}")


def _are_names(parts: tuple[str, ...]) -> bool:
    """Whether no name is empty or has a null character, which databases and file systems do not allow."""
    return all(part and "\0" not in part for part in parts)
