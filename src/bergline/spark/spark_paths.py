"""Local paths as Spark spells them in `_metadata.file_path`."""

from urllib.parse import quote

_LEGAL = "/!$&'()*+,-.:;=@_~"


def spark_path(path: str) -> str:
    """The URI of an absolute path, in which Java leaves letters of every script as they are."""
    return "file:" + "".join(c if c.isascii() and (c.isalnum() or c in _LEGAL) else _encoded(c) for c in path)


def _encoded(character: str) -> str:
    return quote(character, safe="") if character.isascii() or character.isspace() else character
