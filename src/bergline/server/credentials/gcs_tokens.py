"""Google tokens for one table only: the server exchanges its own for one with a credential access boundary."""

import http.client
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from bergline.catalog.rest.protocol.bodies import StorageCredential
from bergline.catalog.sql.directories.table_directories import outermost
from bergline.errors import RefusedError, UnavailableError
from bergline.governance.grants.file_actions import FileActions
from bergline.io.gcs import GCS_SCHEMES
from bergline.io.locations import directory_location, scheme_of
from bergline.server.credentials.credentials_cache import CredentialsCache
from bergline.server.credentials.file_access import METADATA_MARK, VERSION_HINT
from bergline.server.credentials.vending import VendedCredentials, fingerprint_of, prefixes_of, storage_config
from bergline.server.http.settings import public_settings

STS_URL = "https://sts.googleapis.com/v1/token"
_METADATA_VARIABLE, _METADATA_HOST = "GCE_METADATA_HOST", "metadata.google.internal"
_METADATA_PATH = "/computeMetadata/v1/instance/service-accounts/default/token"
_TOKEN, _EXPIRY = "gcs.oauth2.token", "gcs.oauth2.token-expires-at"
_ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105  (the name of a kind)
_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
_READING = ["inRole:roles/storage.objectViewer"]
_WRITING = ["inRole:roles/storage.objectCreator"]
"""To make objects: one that replaces another needs the permission to delete it."""
_DELETING = ["inRole:roles/storage.legacyBucketWriter"]
_OF_THE_SERVER = (METADATA_MARK, f"{METADATA_MARK}.gz", f"/{VERSION_HINT}")
_MOST_RULES = 10
_TIMEOUT_S = 10
_OK = 200
_HOUR_S = 3600


class _SourceToken(NamedTuple):
    text: str
    expires_ms: int


class GcsVending:
    """Tokens with a boundary around the table's own directories; cached until half of the lifetime is over."""

    is_for_one_table = keeps_files = True

    def __init__(
        self,
        properties: Mapping[str, str],
        *,
        sts_url: str = STS_URL,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._properties = dict(properties)
        self._sts_url = sts_url
        self._clock_ms = clock_ms
        self._cache = CredentialsCache(clock_ms)

    def credentials(self, locations: Sequence[str], actions: FileActions, *, principal: str) -> VendedCredentials:
        """Cached or new tokens; RefusedError where no boundary can be limited to these directories."""
        directories = _on_gcs(locations)
        if not directories:
            return VendedCredentials((), "")
        known = self._cache.find((principal, actions, directories))
        return known or self._downscoped(directories, actions, principal)

    def cached_credentials(
        self, locations: Sequence[str], actions: FileActions, *, principal: str
    ) -> VendedCredentials | None:
        """Tokens that are cached and have half of their lifetime left."""
        directories = _on_gcs(locations)
        return self._cache.find((principal, actions, directories)) if directories else VendedCredentials((), "")

    def _downscoped(self, directories: tuple[str, ...], actions: FileActions, principal: str) -> VendedCredentials:
        options = {"accessBoundary": access_boundary(directories, actions)}
        source, now = self._source(), self._clock_ms()
        form = {
            "grant_type": _EXCHANGE,
            "requested_token_type": _ACCESS_TOKEN,
            "subject_token_type": _ACCESS_TOKEN,
            "subject_token": source.text,
            "options": quote(json.dumps(options)),  # encoded twice, as Google's own clients do
        }
        headers = {"content-type": "application/x-www-form-urlencoded"}
        answer = _ask(self._sts_url, "POST", headers, urlencode(form).encode())
        token = str(answer["access_token"])
        lifetime_ms = 1000 * int(answer.get("expires_in", 0))
        expires_ms = min(now + lifetime_ms, source.expires_ms) if lifetime_ms else source.expires_ms
        own = {_TOKEN: token, _EXPIRY: str(expires_ms)}
        public = public_settings(self._properties)
        credentials = tuple(StorageCredential(p, storage_config(public, p) | own) for p in prefixes_of(directories))
        vended = VendedCredentials(credentials, fingerprint_of(token), expires_ms)
        return self._cache.keep((principal, actions, directories), vended, now + (expires_ms - now) // 2)

    def _source(self) -> _SourceToken:
        """The server's own token: from its properties, or that of the machine that it runs on."""
        given, now = self._properties.get(_TOKEN), self._clock_ms()
        if given:
            return _SourceToken(given, int(self._properties.get(_EXPIRY) or now + 1000 * _HOUR_S))
        host = os.environ.get(_METADATA_VARIABLE) or _METADATA_HOST
        answer = _ask(f"http://{host}{_METADATA_PATH}", "GET", {"metadata-flavor": "Google"})
        return _SourceToken(str(answer["access_token"]), now + 1000 * int(answer.get("expires_in", _HOUR_S)))


def access_boundary(directories: Sequence[str], actions: FileActions) -> dict[str, Any]:
    """The boundary for a table, with a rule to read each directory, and one to write to it.

    RefusedError if it would cover a bucket, or is too long.
    """
    most = _MOST_RULES if actions < FileActions.WRITE else _MOST_RULES // 2
    if len(directories) > most:
        raise RefusedError(f"expected up to {most} directories for a Google token, found {len(directories)}")
    rules = [rule for directory in directories for rule in _rules(directory, actions)]
    return {"accessBoundaryRules": rules}


def _rules(directory: str, actions: FileActions) -> Iterator[dict[str, Any]]:
    _, bucket, key = directory_location(directory)
    if not key:
        raise RefusedError(
            f"expected a directory below a bucket to hand out credentials for, found the whole of `{directory}`",
            hints=["give the table a location of its own"],
        )
    objects, listed = _literal(f"projects/_/buckets/{bucket}/objects/{key}/"), _literal(f"{key}/")
    prefix = "api.getAttribute('storage.googleapis.com/objectListPrefix', '')"
    inside = f"resource.name.startsWith({objects})"
    yield _rule(bucket, _READING, f"{inside} || {prefix}.startsWith({listed})")
    if actions >= FileActions.WRITE:
        others = "".join(f" && !resource.name.endsWith('{end}')" for end in _OF_THE_SERVER)
        yield _rule(bucket, _WRITING if actions < FileActions.DELETE else _DELETING, inside + others)


def _rule(bucket: str, permissions: list[str], expression: str) -> dict[str, Any]:
    return {
        "availableResource": f"//storage.googleapis.com/projects/_/buckets/{bucket}",
        "availablePermissions": permissions,
        "availabilityCondition": {"expression": expression},
    }


def _literal(text: str) -> str:
    """A text in Google's expression language; RefusedError for characters that could end it."""
    if any(c in "'\\\r\n" for c in text):
        raise RefusedError(f"expected a directory without quotes and backslashes for a Google token, found {text!a}")
    return f"'{text}'"


def _on_gcs(locations: Sequence[str]) -> tuple[str, ...]:
    return tuple(outermost(p.rstrip("/") for p in locations if scheme_of(p) in GCS_SCHEMES))


def _ask(url: str, method: str, headers: Mapping[str, str], body: bytes | None = None) -> dict[str, Any]:
    """An answer of Google in JSON; UnavailableError without one, and without anything secret in it."""
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.netloc, timeout=_TIMEOUT_S)
    try:
        connection.request(method, parts.path, body, dict(headers))
        response = connection.getresponse()
        text = response.read()
        if response.status != _OK:
            raise UnavailableError(f"cannot get a token for a table: {parts.netloc} says {response.status}")
        answer = json.loads(text)
        if not isinstance(answer, dict) or "access_token" not in answer:
            raise UnavailableError(f"cannot get a token for a table: {parts.netloc} gives none")
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise UnavailableError(f"cannot get a token for a table from {parts.netloc}: {type(error).__name__}") from None
    finally:
        connection.close()
    return answer
