"""Credentials of object stores that clients may request: those that the server was started with.

They appear in no log and no audit row, and only in responses to requests for them.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from bergline.catalog.rest.protocol.bodies import StorageCredential
from bergline.errors import InvalidInputError, RefusedError
from bergline.governance.grants.file_actions import FileActions
from bergline.io.locations import scheme_of
from bergline.io.s3 import S3_SCHEMES
from bergline.server.http.settings import public_settings

DELEGATION = "x-iceberg-access-delegation"
_VENDED, _SIGNED = "vended-credentials", "remote-signing"
_FAMILIES = {"gs": ("gcs.",), "gcs": ("gcs.",)} | dict.fromkeys(S3_SCHEMES, ("s3.", "client."))
_AZURE = ("adls.",)
_REGIONS = ("s3.region", "client.region")
_VIRTUAL = "s3.force-virtual-addressing"


class VendedCredentials(msgspec.Struct, frozen=True):
    """Credentials for the files of one table, or settings with which clients do without."""

    credentials: tuple[StorageCredential, ...]
    fingerprint: str
    """Differs for other credentials; it reveals nothing about them."""
    expires_ms: int | None = None
    config: dict[str, str] = {}
    """Settings for all files of the table."""


class Vending(Protocol):
    """A source of credentials."""

    is_for_one_table: bool
    """Whether credentials are limited to the directories of one table."""
    keeps_files: bool
    """Whether those for `FileActions.WRITE` cannot replace files that are there."""

    def credentials(self, locations: Sequence[str], actions: FileActions, *, principal: str) -> VendedCredentials:
        """Credentials for the directories of a table, for these actions and no others where that is possible.

        No two principals get the same.

        UnavailableError if they cannot be had now, RefusedError where there are none that allow so little.
        """

    def cached_credentials(
        self, locations: Sequence[str], actions: FileActions, *, principal: str
    ) -> VendedCredentials | None:
        """The same if no waiting is needed, or None."""


class StaticVending:
    """Vends the server's own storage properties: whoever has them may do what the server may."""

    is_for_one_table = keeps_files = False

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._properties = dict(properties)
        if public_settings(self._properties) == self._properties:
            raise InvalidInputError(
                "expected credentials of an object store to hand out, found none",
                hints=["give them with --property s3.access-key-id=… and --property s3.secret-access-key=…"],
            )

    def credentials(self, locations: Sequence[str], actions: FileActions, *, principal: str) -> VendedCredentials:
        """The properties of the stores that the locations are in; RefusedError unless a caller may do everything.

        They are the server's own, and so the same for everybody.
        """
        del principal
        prefixes = prefixes_of(locations)
        found = [StorageCredential(prefix, storage_config(self._properties, prefix)) for prefix in prefixes]
        credentials = tuple(c for c in found if c.config)
        if credentials and actions < FileActions.EVERYTHING:
            raise RefusedError(
                "cannot hand out the server's own keys, which open all tables, "
                "to a caller who does not administer the catalog",
                hints=["start the server with --assume-role, --downscope-gcs or --remote-signing"],
            )
        return VendedCredentials(credentials, fingerprint_of("static", *prefixes) if credentials else "")

    def cached_credentials(
        self, locations: Sequence[str], actions: FileActions, *, principal: str
    ) -> VendedCredentials | None:
        """The same; None for a caller who may not do everything."""
        return self.credentials(locations, actions, principal=principal) if actions is FileActions.EVERYTHING else None


def requests_credentials(headers: Mapping[str, str]) -> bool:
    """Whether a client requests credentials with the response."""
    return _VENDED in _requested(headers)


def requests_signing(headers: Mapping[str, str]) -> bool:
    """Whether a client can have its requests to the object store signed by the server."""
    return _SIGNED in _requested(headers)


def _requested(headers: Mapping[str, str]) -> set[str]:
    return {text.strip().lower() for text in headers.get(DELEGATION, "").split(",")}


def prefixes_of(locations: Sequence[str]) -> tuple[str, ...]:
    """The prefixes for which clients use credentials, one for each bucket, as Java expects: a directory, or the bucket.

    What the credentials allow is another matter.
    """
    by_bucket: dict[str, list[str]] = {}
    for place in dict.fromkeys(place.rstrip("/") for place in locations):
        scheme, _, rest = place.partition("://")
        by_bucket.setdefault(f"{scheme}://{rest.partition('/')[0]}", []).append(place)
    return tuple(
        f"{next((p for p in inside if all(f'{other}/'.startswith(f'{p}/') for other in inside)), bucket)}/"
        for bucket, inside in by_bucket.items()
    )


def storage_config(properties: Mapping[str, str], prefix: str) -> dict[str, str]:
    """The properties for a location, with the names and defaults that clients expect."""
    scheme = scheme_of(prefix)
    if scheme == "file":
        return {}
    families = _FAMILIES.get(scheme, _AZURE)
    config = {key: value for key, value in properties.items() if key.startswith(families)}
    region = next((config[name] for name in _REGIONS if name in config), None)
    regions = {} if region is None else dict.fromkeys(_REGIONS, region)
    # our default; other clients need it
    style = {"s3.path-style-access": "true"} if "s3.endpoint" in config and _VIRTUAL not in config else {}
    return regions | style | config


def fingerprint_of(*parts: str) -> str:
    """A short hash of the parts."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
