"""Credentials of object stores that clients may ask for: those that the server was started with.

They stand in no log, no audit row and no answer but to those who ask for them.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from bergline.catalog.rest.protocol.bodies import StorageCredential
from bergline.errors import InvalidInputError
from bergline.io.locations import scheme_of
from bergline.io.s3 import S3_SCHEMES
from bergline.server.http.settings import public_settings

DELEGATION = "x-iceberg-access-delegation"
_WISH = "vended-credentials"
_FAMILIES = {"gs": ("gcs.",), "gcs": ("gcs.",)} | dict.fromkeys(S3_SCHEMES, ("s3.", "client."))
_AZURE = ("adls.",)
_REGIONS = ("s3.region", "client.region")
_VIRTUAL = "s3.force-virtual-addressing"


class Keys(msgspec.Struct, frozen=True):
    """Credentials for the files of one table."""

    credentials: tuple[StorageCredential, ...]
    mark: str
    """Other keys have another mark; it tells nothing about them."""
    expires_ms: int | None = None


class Vending(Protocol):
    """Who hands out credentials."""

    is_for_one_table: bool
    """Whether they open the directories of one table alone."""

    def keys(self, places: Sequence[str]) -> Keys:
        """Credentials for the directories of a table; UnavailableError while there are none to be had."""

    def known_keys(self, places: Sequence[str]) -> Keys | None:
        """The same if it takes no waiting."""


class StaticVending:
    """Hands out the very properties of storage that the server works with: whoever has them may do what it may."""

    is_for_one_table = False

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = dict(properties)
        if public_settings(self._properties) == self._properties:
            raise InvalidInputError(
                "expected keys of an object store to hand out, found none",
                hints=["give them with --property s3.access-key-id=… and --property s3.secret-access-key=…"],
            )

    def keys(self, places: Sequence[str]) -> Keys:
        """The properties of the stores that the places are in."""
        prefixes = prefixes_of(places)
        found = [StorageCredential(prefix, storage_config(self._properties, prefix)) for prefix in prefixes]
        credentials = tuple(c for c in found if c.config)
        return Keys(credentials, mark_of("static", *prefixes) if credentials else "")

    def known_keys(self, places: Sequence[str]) -> Keys | None:
        """The same."""
        return self.keys(places)


def asks_for_keys(headers: Mapping[str, str]) -> bool:
    """Whether a client wants credentials with its answer."""
    return _WISH in {text.strip().lower() for text in headers.get(DELEGATION, "").split(",")}


def prefixes_of(places: Sequence[str]) -> tuple[str, ...]:
    """Where clients use credentials, one prefix in each bucket, as Java wants it: the directory, or the bucket.

    It says nothing of what the credentials open.
    """
    by_bucket: dict[str, list[str]] = {}
    for place in dict.fromkeys(place.rstrip("/") for place in places):
        scheme, _, rest = place.partition("://")
        by_bucket.setdefault(f"{scheme}://{rest.partition('/')[0]}", []).append(place)
    return tuple(
        f"{next((p for p in inside if all(f'{other}/'.startswith(f'{p}/') for other in inside)), bucket)}/"
        for bucket, inside in by_bucket.items()
    )


def storage_config(properties: Mapping[str, str], prefix: str) -> dict[str, str]:
    """The properties that count for a location; with the names and defaults that clients look for."""
    scheme = scheme_of(prefix)
    if scheme == "file":
        return {}
    families = _FAMILIES.get(scheme, _AZURE)
    config = {key: value for key, value in properties.items() if key.startswith(families)}
    region = next((config[name] for name in _REGIONS if name in config), None)
    regions = {} if region is None else dict.fromkeys(_REGIONS, region)
    # what we do by default others do only if told to
    style = {"s3.path-style-access": "true"} if "s3.endpoint" in config and _VIRTUAL not in config else {}
    return regions | style | config


def mark_of(*parts: str) -> str:
    """A short text that differs where the parts do."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
