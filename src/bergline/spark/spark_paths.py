"""Locations of files as Spark takes them, and as it spells them in `_metadata.file_path`."""

from urllib.parse import quote

from bergline.io.locations import local_path, object_location, scheme_of

_LEGAL = "/!$&'()*+,-.:;=@_~"


def spark_location(location: str) -> str:
    """Where Spark finds a file: S3 through its S3A connector, whatever the metadata calls it."""
    if scheme_of(location) == "file":
        return f"file://{local_path(location)}"
    _, bucket, key = object_location(location)
    return f"s3a://{bucket}/{key}"


def spark_path(location: str) -> str:
    """The URI of a file, in which Java leaves letters of every script as they are."""
    if scheme_of(location) == "file":
        return f"file:{_encoded_path(local_path(location))}"
    _, bucket, key = object_location(location)
    return f"s3a://{bucket}/{_encoded_path(key)}"


def _encoded_path(path: str) -> str:
    return "".join(c if c.isascii() and (c.isalnum() or c in _LEGAL) else _encoded(c) for c in path)


def _encoded(character: str) -> str:
    return quote(character, safe="") if character.isascii() or character.isspace() else character
