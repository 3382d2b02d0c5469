"""File access with vended credentials: per table, for the prefixes that the server names."""

import datetime as dt
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from bergline.catalog.identifiers import TableName
from bergline.catalog.rest.protocol.bodies import StorageCredential
from bergline.catalog.table_locations import directories_of
from bergline.errors import AuthenticationError, BerglineError
from bergline.io.fileio import FileIO
from bergline.io.locations import normalized, scheme_of
from bergline.io.object_store import ObjectStoreFileIO
from bergline.io.schemes import SchemeFileIO
from bergline.io.store_properties import is_secret_property, is_store_property

_NAMES = msgspec.json.Decoder(TableName)

_EXPIRIES = re.compile(
    r"s3\.session-token-expires-at-ms|gcs\.oauth2\.token-expires-at|adls\.sas-token-expires-at-ms(\..+)?"
)
_EARLY_MS = 300_000
_MOST_SKEW_MS = 900_000  # S3 rejects requests with a larger clock skew
_PAUSE_MS = 30_000
_MOST_TABLES = 10_000
_MOST_STORES = 8


class Vended(msgspec.Struct, frozen=True):
    """The settings and credentials vended for one table's files."""

    places: tuple[str, ...]
    """The directories of the table."""
    config: dict[str, str]
    credentials: tuple[StorageCredential, ...]

    @property
    def expires_ms(self) -> int | None:
        """When the first of the credentials expires."""
        all_settings = [self.config, *(c.config for c in self.credentials)]
        times = [v for settings in all_settings for k, v in settings.items() if _EXPIRIES.fullmatch(k)]
        return min((int(t) for t in times if re.fullmatch(r"\d{1,15}", t)), default=None)

    def settings_for(self, location: str) -> dict[str, str]:
        """The settings for a location: the table's, overridden by those of the longest matching prefix."""
        spellings = (_as_directory(location), _as_directory(normalized(location)))
        fitting = [c for c in self.credentials if any(s.startswith(c.prefix) for s in spellings)]
        own = max(fitting, key=lambda c: len(c.prefix)).config if fitting else {}
        return {k: v for k, v in {**self.config, **own}.items() if is_store_property(k)}


class _Opened(NamedTuple):
    settings: dict[str, str]
    storage: FileIO


class VendedFileIO(SchemeFileIO):
    """FileIO with the vended credentials of the table that a location belongs to, or the user's own properties.

    In another process it uses the credentials that it had when it was pickled, and raises once they have expired.
    """

    def __init__(
        self,
        properties: Mapping[str, str],
        *,
        clock_ms: Callable[[], int],
        renew: Callable[[str], Vended | None] | None = None,
    ) -> None:
        super().__init__(properties=properties)
        self._properties = dict(properties)
        self._clock_ms = clock_ms
        self._renew = renew
        self._tables: OrderedDict[str, Vended] = OrderedDict()
        self._places: dict[str, str] = {}
        self._asked_ms: dict[str, int] = {}
        self._opened: dict[str, tuple[_Opened, ...]] = {}
        self._lock = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            kept = {"_tables": OrderedDict(self._tables), "_places": dict(self._places), "_opened": dict(self._opened)}
        return {**self.__dict__, **kept, "_lock": None, "_renew": None, "_clock_ms": _now_ms}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()

    def vend(self, table: str, vended: Vended) -> None:
        """Set the vended credentials of a table."""
        with self._lock:
            self._forget(table)
            if vended.config or vended.credentials:
                self._tables[table] = vended
                self._places |= dict.fromkeys(vended.places, table)
            while len(self._tables) > _MOST_TABLES:
                self._forget(next(iter(self._tables)))

    def storage_for(self, location: str) -> FileIO:
        """The storage for a location, opened with its current settings."""
        if scheme_of(location) == "file" or not self._tables:
            return super().storage_for(location)
        table = self._owner(location)
        if table is None:
            return super().storage_for(location)
        return self._storage(table, self._fresh(table).settings_for(location))

    def _forget(self, table: str) -> None:
        self._asked_ms.pop(table, None)
        if gone := self._tables.pop(table, None):
            for place in gone.places:
                if self._places.get(place) == table:
                    del self._places[place]

    def _owner(self, location: str) -> str | None:
        """The table with the innermost directory around a location, or any with credentials for a prefix of it."""
        asked = directory = _as_directory(normalized(location))
        with self._lock:
            while "/" in directory:
                directory = directory.rpartition("/")[0]
                if directory in self._places:
                    return self._places[directory]
            prefixes = [
                (len(c.prefix), t) for t, v in self._tables.items() for c in v.credentials if asked.startswith(c.prefix)
            ]
            return max(prefixes)[1] if prefixes else None

    def _fresh(self, table: str) -> Vended:
        """The vended credentials of a table, renewed if they are about to expire."""
        with self._lock:
            vended = self._tables[table]
            expires = vended.expires_ms
            if expires is None:
                return vended
            now = self._clock_ms()
            if self._renew is None:
                _check_alive(table, expires, now)
                return vended
            if now < expires - _EARLY_MS or abs(now - self._asked_ms.get(table, -_PAUSE_MS)) < _PAUSE_MS:
                return vended  # with a fast local clock everything looks expired: do not renew for each file
            self._asked_ms[table] = now
            try:
                renewed = self._renew(table)
            except BerglineError:  # the current ones may still work
                return vended
            if renewed is None:
                return vended
            config = renewed.config or {k: v for k, v in vended.config.items() if not is_secret_property(k)}
            self._tables[table] = renewed = msgspec.structs.replace(renewed, places=vended.places, config=config)
            return renewed

    def _storage(self, table: str, settings: dict[str, str]) -> FileIO:
        """The stores of a table, one per settings, cached while those are current."""
        with self._lock:
            opened = [o for o in self._opened.get(table, ()) if o.settings == settings]
            if not opened:
                opened = [_Opened(settings, ObjectStoreFileIO({**self._properties, **settings}))]
                self._opened[table] = (*opened, *self._opened.get(table, ()))[:_MOST_STORES]
            return opened[0].storage


def _check_alive(table: str, expires_ms: int, now_ms: int) -> None:
    """Raise if credentials that cannot be renewed here have certainly expired."""
    if now_ms < expires_ms + _MOST_SKEW_MS:
        return
    name = _NAMES.decode(table)
    since = dt.datetime.fromtimestamp(expires_ms / 1000, dt.UTC).isoformat(timespec="seconds")
    raise AuthenticationError(
        f"the credentials for the files of table `{name}` expired at {since}; a task has those alone that it was sent",
        hints=["split the work, have the server vend credentials for longer, or set credentials as properties"],
    )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _as_directory(location: str) -> str:
    """A location with a trailing slash, to compare directories with prefixes."""
    return f"{location.rstrip('/')}/"


def normalized_directories(location: str, properties: Mapping[str, str]) -> tuple[str, ...]:
    """The directories of a table's files, normalized."""
    return tuple(normalized(place).rstrip("/") for place in directories_of(location, properties))
