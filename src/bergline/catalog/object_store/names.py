"""Object keys of names: each level is percent-encoded, so that any name is a valid and unique key."""

from urllib.parse import quote, unquote

from bergline.catalog.identifiers import Namespace, TableName
from bergline.errors import InvalidInputError

NAMESPACES = "namespaces"
POINTERS = "pointers"
COMMITS = "commits"
MARK = "catalog.json"
ENDING = ".json"
_LONGEST_LEVEL = 240  # in bytes; with the extension it still fits a file name, for stores that keep objects as files
_LONGEST_KEY = 800  # of the 1024 that stores allow, with room for the catalog's own directory


def pointer_object(table: TableName) -> str:
    """The object of a table or a view."""
    return _object(POINTERS, (*table.namespace, table.name))


def namespace_object(namespace: Namespace) -> str:
    """The object of a namespace."""
    return _object(NAMESPACES, namespace)


def commit_object(commit: str) -> str:
    """The object of a commit of several tables, by its UUID."""
    return f"{COMMITS}/{commit}{ENDING}"


def commit_of(name: str) -> str:
    """The UUID in the name of a commit's object."""
    return name.removeprefix(f"{COMMITS}/").removesuffix(ENDING)


def below(directory: str, namespace: Namespace) -> str:
    """The key prefix of everything in a namespace."""
    return "/".join([directory, *map(_level, namespace)])


def beginning(table: TableName, characters: int) -> str:
    """What the keys of names in a namespace begin with that have the same first characters as a name."""
    return f"{below(POINTERS, table.namespace)}/{_level(table.name[:characters])}"


def levels_of(name: str) -> tuple[str, ...] | None:
    """The levels encoded in an object's key; None if it is not one of ours."""
    directory, *encoded = name.removesuffix(ENDING).split("/")
    levels = tuple(unquote(level, errors="replace") for level in encoded)
    ours = bool(levels) and all(levels) and name == _joined(directory, levels)
    return levels if ours else None


def _object(directory: str, levels: tuple[str, ...]) -> str:
    name = _joined(directory, tuple(levels))
    longest = max(map(len, map(_level, levels)))
    if longest > _LONGEST_LEVEL or len(name) > _LONGEST_KEY:
        raise InvalidInputError(
            f"expected a name of up to {_LONGEST_LEVEL} bytes in the object store, {_LONGEST_KEY} with its namespace, "
            f"found {longest} and {len(name)} in `{'.'.join(levels)[:100]}`"
        )
    return name


def _joined(directory: str, levels: tuple[str, ...]) -> str:
    return "/".join([directory, *map(_level, levels)]) + ENDING


def _level(text: str) -> str:
    try:
        return quote(text, safe="").replace(".", "%2E")
    except UnicodeEncodeError:
        raise InvalidInputError(f"expected a name that can be encoded, found {text!a}") from None
