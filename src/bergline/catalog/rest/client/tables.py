"""Tables of a REST catalog by name; commits to them are in `commits`."""

import contextlib
import math
import threading
import time
from collections import OrderedDict
from itertools import islice
from typing import NamedTuple

import msgspec

from bergline.catalog.at_ref.lake_ref import LakeRefKind, parse_in_path
from bergline.catalog.catalog import DroppedTable, LoadedTable
from bergline.catalog.identifiers import Namespace, TableName
from bergline.catalog.protection.table_rules_guard import TableRulesGuard
from bergline.catalog.rest.client.calls import NOT_MODIFIED, ParsedResponse
from bergline.catalog.rest.client.error_responses import CallSubject
from bergline.catalog.rest.client.files import Vended, VendedFileIO, normalized_directories
from bergline.catalog.rest.client.name_conflicts import is_view, name_taken_error
from bergline.catalog.rest.client.relations import RelationEndpoints, RestRelations
from bergline.catalog.rest.client.retries import ChangeInDoubtError
from bergline.catalog.rest.client.session import RestSession
from bergline.catalog.rest.client.settle import UnsettledError, happened, settle
from bergline.catalog.rest.protocol.bodies import (
    CommitTableResponse,
    CreateTableRequest,
    LoadCredentialsResponse,
    LoadTableResult,
    RegisterTableRequest,
)
from bergline.catalog.rest.protocol.branch_tables import BRANCH_TABLES
from bergline.catalog.rest.protocol.endpoints import (
    CREATE_TABLE,
    DROP_TABLE,
    LIST_DROPPED_TABLES,
    LIST_TABLES,
    LOAD_CREDENTIALS,
    LOAD_TABLE,
    REGISTER_TABLE,
    RENAME_TABLE,
    TAKE_TURN,
    UNDROP_TABLE,
    UNREGISTER_TABLE,
)
from bergline.catalog.rest.protocol.read_restrictions import read_restrictions
from bergline.catalog.rest.protocol.trash import ListDroppedTablesResponse
from bergline.errors import (
    AlreadyExistsError,
    ConflictError,
    FormatError,
    InvalidInputError,
    UnavailableError,
)
from bergline.format.metadata.json import parse_metadata
from bergline.format.metadata.read_restrictions import ReadRestrictions
from bergline.format.metadata.table_metadata import SeenAt, TableMetadata, changed
from bergline.format.schema.schema import Schema
from bergline.format.types.types import LONG, NestedField

_NAMES = msgspec.json.Decoder(TableName)

_ANY_SCHEMA = Schema((NestedField(1, "id", required=False, type=LONG),), 0)


RESTRICTIONS_HOLD_S = 60.0
"""For how long a 304 is taken to mean that readers are as restricted as before: ETags of many servers are about the
metadata alone, and a policy changes without it."""


class _Restrictions(NamedTuple):
    """The restrictions for readers that a load returned, and when, by the monotonic clock."""

    found: ReadRestrictions | None
    known_s: float


_NEVER = _Restrictions(None, -math.inf)


_ENDPOINTS = RelationEndpoints("table", LIST_TABLES, RENAME_TABLE, DROP_TABLE, UNDROP_TABLE)


class RestTables(RestRelations[LoadedTable]):
    """Tables of a REST catalog, over a session; the server chooses their locations."""

    def __init__(self, session: RestSession) -> None:
        super().__init__(session, _ENDPOINTS)
        self.guard = TableRulesGuard(server_decides=True)
        self._loads = LoadCache()
        self._restrictions: dict[TableName, _Restrictions] = {}
        self._seen_at = _ref_in(session.settings.text("prefix"))
        self.io = VendedFileIO(
            session.settings.storage, clock_ms=lambda: int(session.clock_s() * 1000), renew=self._renewed
        )

    def load(self, name: TableName) -> LoadedTable:
        """Load a table; a server with ETags sends it only if it changed, or if the last whole load is a while ago."""
        about, known = self.about(name), self._loads.find(name)
        is_recent = time.monotonic() - self._restrictions.get(name, _NEVER).known_s < RESTRICTIONS_HOLD_S
        headers = {"If-None-Match": known.etag} if known and known.etag and is_recent else {}
        response = self._session.calls.call(LOAD_TABLE, about, names=self._session.table_path(name), headers=headers)
        if response.status == NOT_MODIFIED and known:
            return known.table
        content = self._session.calls.parsed(response, LoadTableResult, about)
        return self.parsed(name, ParsedResponse(response, content))

    def of_branches(self, namespace: Namespace) -> list[TableName]:
        """The tables that are on branches of the lake alone; servers other than `bergline serve` know none."""
        return self._names_in(namespace, {BRANCH_TABLES: "true"}) if self._session.calls.has(TAKE_TURN) else []

    def default_location(self, name: TableName) -> str:
        """The location that the server would choose for a table; nothing is created."""
        about = self.about(name)
        request = CreateTableRequest(name=name.name, schema=_ANY_SCHEMA, stage_create=True)
        names = self._session.namespace_path(name.namespace)
        try:
            response = self._session.calls.call(CREATE_TABLE, about, names=names, body=request)
        except (AlreadyExistsError, ConflictError) as error:
            raise name_taken_error(self._session, name) from error
        except ChangeInDoubtError as error:  # staging changes nothing, whatever its outcome
            raise UnavailableError(str(error)) from error
        staged = self._session.calls.parsed(response, LoadTableResult, about)
        metadata = parse_metadata(bytes(staged.metadata), f"the server's response for {about}")
        self._vend(name, staged, metadata)
        return metadata.location

    def register(self, name: TableName, metadata_location: str) -> LoadedTable:
        """Register a table; after a lost response, one with this metadata file or a descendant counts as ours."""
        about, request = self.about(name), RegisterTableRequest(name.name, metadata_location)

        def send() -> LoadedTable:
            names = self._session.namespace_path(name.namespace)
            return self.after_change(name, self._session.calls.change(REGISTER_TABLE, about, names=names, body=request))

        def look() -> LoadedTable | None:
            now = self.existing(name)
            if now is not None and metadata_location in self._line(now):
                return now
            if now is not None or is_view(self._session, name):
                raise name_taken_error(self._session, name)
            return None

        if self._is_taken(name):
            raise name_taken_error(self._session, name)
        try:
            return settle(send, look, may_resend=False, waits=self._session.waits())
        except (AlreadyExistsError, ConflictError) as error:
            raise name_taken_error(self._session, name) from error
        except UnsettledError as error:
            raise self.unknown(name, "registered", error) from error

    def unregister(self, name: TableName) -> str:
        """Remove a table from the catalog and return its metadata location, from the server if it has the endpoint."""
        about = self.about(name)
        if not self._session.calls.has(UNREGISTER_TABLE):
            location = self.load(name).metadata_location
            self.drop(name)
            return location
        if (known := self._readable(name)) is not None:
            self._check_gone(known, "the table unregistered")
        gone: list[str] = []

        def send() -> None:
            changed = self._session.calls.change(UNREGISTER_TABLE, about, names=self._session.table_path(name))
            gone.append(changed.content.metadata_location)

        happened(send, lambda: False, what=f"{about} was unregistered", name=str(name), waits=())
        self._forget(name)
        return gone[0]

    @property
    def has_trash(self) -> bool:
        """Whether the server has a trash, and purges tables itself when their time is over."""
        return self._session.calls.has(UNDROP_TABLE)

    def dropped(self, most: int | None = None) -> list[DroppedTable]:
        if not self.has_trash:
            return []
        pages = self._session.pages(LIST_DROPPED_TABLES, ListDroppedTablesResponse, CallSubject("the trash", ""))
        found = (table for page in pages for table in page.tables)
        return [DroppedTable(**msgspec.structs.asdict(table)) for table in islice(found, most)]

    def parsed(self, name: TableName, response: ParsedResponse) -> LoadedTable:
        """The table in a response; cached metadata is not parsed again."""
        content: LoadTableResult | CommitTableResponse = response.content
        about = self.about(name)
        if not content.metadata_location:
            raise FormatError(f"expected `metadata-location` in the server's response for {about}, found none")
        known = self._loads.find(name)
        if known and known.table.metadata_location == content.metadata_location:
            table = known.table
        else:
            earlier = known.table.metadata if known else None
            metadata = parse_metadata(bytes(content.metadata), f"the server's response for {about}", earlier)
            seen = metadata if self._seen_at is None else changed(metadata, seen_at=self._seen_at)
            table = LoadedTable(name, seen, content.metadata_location)
        if isinstance(content, LoadTableResult):
            self._vend(name, content, table.metadata)
        table = self._restricted(table, content)
        self._loads.remember(CachedLoad(table, response.response.headers.get("ETag"), len(response.response.body)))
        return table

    def _is_same(self, now: LoadedTable, before: LoadedTable) -> bool:
        if before.metadata.table_uuid is None:
            return before.metadata_location in self._line(now)
        return now.metadata.table_uuid == before.metadata.table_uuid

    def _line(self, loaded: LoadedTable) -> set[str]:
        return {loaded.metadata_location, *(entry.metadata_file for entry in loaded.metadata.metadata_log)}

    def _check_gone(self, before: LoadedTable, done: str) -> None:
        self.guard.check_change(before.name, before.metadata, None, done)

    def _forget(self, name: TableName) -> None:
        self._loads.forget(name)

    def _restricted(self, table: LoadedTable, content: LoadTableResult | CommitTableResponse) -> LoadedTable:
        """The table with the restrictions for readers; responses to commits lack them: the last load counts."""
        if isinstance(content, LoadTableResult):
            found = read_restrictions(str(table.name), content.read_restrictions)
            self._restrictions[table.name] = _Restrictions(found, time.monotonic())
        restrictions = self._restrictions.get(table.name, _NEVER).found
        if table.metadata.read_restrictions == restrictions:
            return table
        return LoadedTable(table.name, changed(table.metadata, read_restrictions=restrictions), table.metadata_location)

    def _vend(self, name: TableName, response: LoadTableResult, metadata: TableMetadata) -> None:
        places = normalized_directories(metadata.location, metadata.properties)
        self.io.vend(_key(name), Vended(places, response.config or {}, response.storage_credentials or ()))

    def _renewed(self, key: str) -> Vended | None:
        """Fresh credentials for a table: from the credentials endpoint, or with the table."""
        name = _NAMES.decode(key)
        about, names = self.about(name), self._session.table_path(name)
        if self._session.calls.has(LOAD_CREDENTIALS):
            response = self._session.calls.call(LOAD_CREDENTIALS, about, names=names)
            found = self._session.calls.parsed(response, LoadCredentialsResponse, about).storage_credentials
            return Vended((), {}, found) if found else None
        response = self._session.calls.call(LOAD_TABLE, about, names=names)
        loaded = self._session.calls.parsed(response, LoadTableResult, about)
        return Vended((), loaded.config or {}, loaded.storage_credentials or ())


def _key(name: TableName) -> str:
    return msgspec.json.encode(name).decode()


_MOST_BYTES = 32 * 1024 * 1024  # of JSON, which takes several times as much memory once parsed


class CachedLoad(NamedTuple):
    """A table, its ETag and the size of the response."""

    table: LoadedTable
    etag: str | None
    size: int


class LoadCache:
    """The latest load of each table, in bounded memory; thread-safe."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._loads: OrderedDict[TableName, CachedLoad] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def find(self, name: TableName) -> CachedLoad | None:
        """The latest load of a table."""
        with self._lock:
            if name in self._loads:
                self._loads.move_to_end(name)
            return self._loads.get(name)

    def remember(self, load: CachedLoad) -> None:
        """Cache a load, evicting those not used for longest."""
        with self._lock:
            self._drop(load.table.name)
            self._loads[load.table.name] = load
            self._bytes += load.size
            while self._bytes > self._most_bytes and len(self._loads) > 1:
                self._drop(next(iter(self._loads)))

    def forget(self, name: TableName) -> None:
        """Remove a table that was dropped or renamed."""
        with self._lock:
            self._drop(name)

    def _drop(self, name: TableName) -> None:
        if name in self._loads:
            self._bytes -= self._loads.pop(name).size


def _ref_in(prefix: str | None) -> SeenAt | None:
    """The ref of the lake that a server has put into its paths, for a warehouse such as `lake@staging`."""
    with contextlib.suppress(InvalidInputError):  # another server's
        ref = parse_in_path(prefix or "")
        return None if ref is None else SeenAt(ref.name, ref.kind is LakeRefKind.BRANCH)
    return None
