"""Responses to loads as bytes, by metadata file: the file never changes, so neither does the response.

Once cached, a table of 2,000 snapshots costs what one of 2 costs.
"""

import hashlib
import threading
from collections.abc import Callable
from typing import Final

import msgspec

from bergline.catalog.at_ref.lake_ref import LakeRef
from bergline.catalog.rest.protocol.bodies import LoadViewResult
from bergline.errors import InvalidInputError
from bergline.format.encoding.wire import encode_json
from bergline.format.metadata.json import render_metadata_parts
from bergline.format.metadata.refs import CREATED_ON
from bergline.format.metadata.table_metadata import TableMetadata, changed
from bergline.format.view.json import render_view_metadata
from bergline.format.view.view_metadata import ViewMetadata
from bergline.io.gcs import GCS_SCHEMES
from bergline.io.locations import scheme_of
from bergline.server.cache.response_cache import CachedResponse, ResponseCache, Unless
from bergline.server.credentials.vending import VendedCredentials

SNAPSHOT_MODES = ("all", "refs")


class ShownState(msgspec.Struct, frozen=True):
    """What of a table a response shows: the snapshots, at a ref of the lake."""

    snapshots: str = SNAPSHOT_MODES[0]
    at: LakeRef | None = None

    @property
    def key(self) -> str:
        """What tells its responses from others for the same metadata file."""
        return self.snapshots if self.at is None else f"{self.snapshots} {self.at.in_path}"


EVERYTHING: Final = ShownState()
_MAX_BYTES = 128 * 1024 * 1024
_TAG_LENGTH = 32
_MAX_DIRECTORIES = 10_000
_WEAK = "W/"
_RENEWAL_OF_S3 = "client.refresh-credentials-endpoint"
_RENEWAL = dict.fromkeys(GCS_SCHEMES, "gcs.oauth2.refresh-credentials-endpoint")
"""The settings that say where to renew credentials."""


class LoadResponses:
    """The latest responses to loads, in bounded memory."""

    def __init__(self, config: dict[str, str], max_bytes: int = _MAX_BYTES) -> None:
        self._config = config
        self._suffix = b',"config":' + encode_json(config) + b"}"
        self._directories: dict[str, tuple[str, ...]] = {}
        self._lock = threading.Lock()
        self.responses = ResponseCache(max_bytes)

    def cached_table(self, location: str, shown: ShownState, unless: Unless = None) -> CachedResponse | None:
        """The response for a table, if it is cached; not one for which `unless` holds."""
        return self.responses.known(f"{shown.key} {location}", unless)

    def table(self, location: str, shown: ShownState, load: Callable[[], TableMetadata]) -> CachedResponse:
        """The response for the table in a metadata file, which is loaded, as it is shown, only if it must be."""
        key, mode = f"{shown.key} {location}", shown.snapshots

        def render() -> CachedResponse:
            metadata = load()
            response = CachedResponse(key, self.render_table(location, with_snapshots(metadata, mode)), self._suffix)
            response.on_branch = metadata.properties.get(CREATED_ON)
            return response

        return self.responses.find(key, render)

    def view(self, location: str, load: Callable[[], ViewMetadata]) -> CachedResponse:
        """The response for the view in a metadata file."""
        key = f"view {location}"
        return self.responses.find(key, lambda: CachedResponse(key, _view_response(location, load())))

    def render_table(self, location: str | None, metadata: TableMetadata) -> bytes:
        """The response for a table, staged ones without a location included."""
        place = b"" if location is None else b',"metadata-location":' + encode_json(location)
        return b"".join((b'{"metadata":', *render_metadata_parts(metadata), place, self._suffix))

    def cached_directories(self, location: str) -> tuple[str, ...] | None:
        """The directories of the table in a metadata file, if they are cached."""
        return self._directories.get(location)

    def directories(self, location: str, load: Callable[[], tuple[str, ...]]) -> tuple[str, ...]:
        """The directories of the table in a metadata file."""
        found = self._directories.get(location)
        if found is None:
            found = load()
            with self._lock:
                if len(self._directories) >= _MAX_DIRECTORIES:
                    self._directories.clear()
                self._directories[location] = found
        return found

    def suffix_with_credentials(self, vended: VendedCredentials, endpoint: str) -> bytes:
        """The end of a table's response with credentials: by prefix, and in `config` for older clients.

        Everything before it is the same as without credentials.
        """
        config = {**self._config, **vended.config}
        if not vended.credentials:
            return b',"config":' + encode_json(config) + b"}"
        config |= vended.credentials[0].config
        if vended.expires_ms is not None:
            config[_RENEWAL.get(scheme_of(vended.credentials[0].prefix), _RENEWAL_OF_S3)] = endpoint
        return b',"config":' + encode_json(config) + b',"storage-credentials":' + encode_json(vended.credentials) + b"}"

    def with_suffix(self, body: bytes, suffix: bytes | None) -> bytes:
        """A table's response with another end."""
        return body if suffix is None else body.removesuffix(self._suffix) + suffix


def with_snapshots(metadata: TableMetadata, mode: str) -> TableMetadata:
    """The table with all its snapshots, or with those alone that refs name."""
    if mode == "all":
        return metadata
    named = {ref.snapshot_id for ref in metadata.refs.values()}
    return changed(metadata, snapshots=tuple(s for s in metadata.snapshots if s.snapshot_id in named))


def shown_state(text: str | None, at: LakeRef | None) -> ShownState:
    """What a load asks for: all snapshots, or those of refs alone."""
    if text is None and at is None:
        return EVERYTHING
    mode = (text or SNAPSHOT_MODES[0]).lower()
    if mode not in SNAPSHOT_MODES:
        raise InvalidInputError(f"expected {' or '.join(SNAPSHOT_MODES)} for `snapshots`, found `{mode[:40]}`")
    return ShownState(mode, at)


def entity_tag(location: str, shown: ShownState = EVERYTHING, vended: VendedCredentials | None = None) -> str:
    """The ETag of a load: it depends on the metadata file, on the snapshots that are shown and on the credentials.

    It is weak, because the response in gzip has the same.
    """
    mark = f" {vended.fingerprint}" if vended and vended.fingerprint else ""
    digest = hashlib.sha256(f"{shown.key} {location}{mark}".encode()).hexdigest()
    return f'{_WEAK}"{digest[:_TAG_LENGTH]}"'


def matches(tag: str, header: str | None) -> bool:
    """Whether If-None-Match names the tag, as a weak one, a strong one, or without its quotes."""
    if header is None:
        return False
    named = {text.strip().removeprefix(_WEAK) for text in header.split(",")}
    strong = tag.removeprefix(_WEAK)
    return strong in named or strong.strip('"') in named or "*" in named


def _view_response(location: str, metadata: ViewMetadata) -> bytes:
    return encode_json(LoadViewResult(location, msgspec.Raw(render_view_metadata(metadata))))
