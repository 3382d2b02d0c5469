"""Answers of loads as bytes, by metadata file: the file never changes, so neither does the answer.

A table of 2,000 snapshots costs what one of 2 costs, once somebody has loaded it.
"""

import hashlib
import threading
from collections.abc import Callable

import msgspec

from bergline.catalog.rest.protocol.bodies import LoadTableResult, LoadViewResult
from bergline.errors import InvalidInputError
from bergline.format.encoding.wire import encode_json
from bergline.format.metadata.json import render_metadata
from bergline.format.metadata.table_metadata import TableMetadata, changed
from bergline.format.view.json import render_view_metadata
from bergline.format.view.view_metadata import ViewMetadata
from bergline.server.cache.responses import CachedResponse, ResponseCache, Unless
from bergline.server.credentials.vending import Keys

SNAPSHOT_MODES = ("all", "refs")
_MOST_BYTES = 128 * 1024 * 1024
_TAG_LENGTH = 32
_MOST_PLACES = 10_000
_WEAK = "W/"


class CachedLoads:
    """The bytes of the answers last given, in bounded memory."""

    def __init__(self, config: dict[str, str], most_bytes: int = _MOST_BYTES) -> None:
        self._config = config
        self._end = b',"config":' + encode_json(config) + b"}"
        self._places: dict[str, tuple[str, ...]] = {}
        self._lock = threading.Lock()
        self.answers = ResponseCache(most_bytes)

    def known_table(self, location: str, mode: str, unless: Unless = None) -> CachedResponse | None:
        """The answer for a table, if somebody asked for it before; not one for which `unless` holds."""
        return self.answers.known(f"{mode} {location}", unless)

    def table(self, location: str, mode: str, load: Callable[[], TableMetadata]) -> CachedResponse:
        """The answer for the table in a metadata file, which is loaded only if it must be."""
        key = f"{mode} {location}"
        return self.answers.find(
            key, lambda: CachedResponse(key, self.render_table(location, shown(load(), mode)), self._end)
        )

    def view(self, location: str, load: Callable[[], ViewMetadata]) -> CachedResponse:
        """The answer for the view in a metadata file."""
        key = f"view {location}"
        return self.answers.find(key, lambda: CachedResponse(key, _view_answer(location, load())))

    def render_table(self, location: str | None, metadata: TableMetadata) -> bytes:
        """The answer for a table, staged ones without a location included."""
        raw = msgspec.Raw(render_metadata(metadata))
        return encode_json(LoadTableResult(raw, location, self._config))

    def known_places(self, location: str) -> tuple[str, ...] | None:
        """The directories of the table in a metadata file, if somebody asked for them before."""
        return self._places.get(location)

    def places(self, location: str, load: Callable[[], tuple[str, ...]]) -> tuple[str, ...]:
        """The directories of the table in a metadata file."""
        found = self._places.get(location)
        if found is None:
            found = load()
            with self._lock:
                if len(self._places) >= _MOST_PLACES:
                    self._places.clear()
                self._places[location] = found
        return found

    def end_with_keys(self, keys: Keys, endpoint: str) -> bytes:
        """How a table's answer ends that has credentials for files: by prefix, and in the settings for older clients.

        Everything before is as it is without.
        """
        config = {**self._config, **keys.credentials[0].config}
        if keys.expires_ms is not None:
            config["client.refresh-credentials-endpoint"] = endpoint
        return b',"config":' + encode_json(config) + b',"storage-credentials":' + encode_json(keys.credentials) + b"}"

    def with_end(self, body: bytes, end: bytes | None) -> bytes:
        """A table's answer with another end."""
        return body if end is None else body.removesuffix(self._end) + end


def shown(metadata: TableMetadata, mode: str) -> TableMetadata:
    """The table with all its snapshots, or with those alone that refs name."""
    if mode == "all":
        return metadata
    named = {ref.snapshot_id for ref in metadata.refs.values()}
    return changed(metadata, snapshots=tuple(s for s in metadata.snapshots if s.snapshot_id in named))


def check_mode(text: str | None) -> str:
    """Which snapshots a load asks for."""
    mode = (text or SNAPSHOT_MODES[0]).lower()
    if mode not in SNAPSHOT_MODES:
        raise InvalidInputError(f"expected {' or '.join(SNAPSHOT_MODES)} for `snapshots`, found `{mode[:40]}`")
    return mode


def entity_tag(location: str, mode: str = SNAPSHOT_MODES[0], keys: Keys | None = None) -> str:
    """What names one answer for ever: the file, which of its snapshots are shown, and which credentials are with it.

    It is weak, because an answer in gzip has the same.
    """
    mark = f" {keys.mark}" if keys and keys.mark else ""
    digest = hashlib.sha256(f"{mode} {location}{mark}".encode()).hexdigest()
    return f'{_WEAK}"{digest[:_TAG_LENGTH]}"'


def matches(tag: str, header: str | None) -> bool:
    """Whether If-None-Match names the tag, as a weak one, a strong one, or without its quotes."""
    if header is None:
        return False
    named = {text.strip().removeprefix(_WEAK) for text in header.split(",")}
    strong = tag.removeprefix(_WEAK)
    return strong in named or strong.strip('"') in named or "*" in named


def _view_answer(location: str, metadata: ViewMetadata) -> bytes:
    return encode_json(LoadViewResult(location, msgspec.Raw(render_view_metadata(metadata))))
