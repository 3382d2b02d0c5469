"""Tables of a REST catalog by name; commits to them are in `commits`."""

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from bergline.catalog.catalog import DroppedTable, LoadedTable, UnprovenDropError
from bergline.catalog.identifiers import Namespace, TableName
from bergline.catalog.protection.table_rules_guard import TableRulesGuard
from bergline.catalog.rest.client.calls import NOT_MODIFIED, ParsedResponse
from bergline.catalog.rest.client.error_responses import CallSubject
from bergline.catalog.rest.client.files import Vended, VendedFileIO, normalized_directories
from bergline.catalog.rest.client.name_conflicts import is_view, name_taken_error
from bergline.catalog.rest.client.namespaces import RestNamespaces
from bergline.catalog.rest.client.retries import ChangeInDoubtError
from bergline.catalog.rest.client.session import RestSession
from bergline.catalog.rest.client.settle import UnsettledError, happened, settle
from bergline.catalog.rest.client.transport import HttpResponse
from bergline.catalog.rest.protocol.bodies import (
    CommitTableResponse,
    CreateTableRequest,
    ListTablesResponse,
    LoadCredentialsResponse,
    LoadTableResult,
    RegisterTableRequest,
    RenameRequest,
)
from bergline.catalog.rest.protocol.endpoints import (
    CREATE_TABLE,
    DROP_TABLE,
    LIST_DROPPED_TABLES,
    LIST_TABLES,
    LOAD_CREDENTIALS,
    LOAD_TABLE,
    REGISTER_TABLE,
    RENAME_TABLE,
    UNDROP_TABLE,
    UNREGISTER_TABLE,
)
from bergline.catalog.rest.protocol.read_restrictions import read_restrictions
from bergline.catalog.rest.protocol.trash import ListDroppedTablesResponse, UndropRequest
from bergline.errors import (
    AlreadyExistsError,
    BerglineError,
    CommitUnknownError,
    ConflictError,
    FormatError,
    NotFoundError,
    RefusedError,
    UnavailableError,
    UnsupportedError,
)
from bergline.format.metadata.json import parse_metadata
from bergline.format.metadata.read_restrictions import ReadRestrictions
from bergline.format.metadata.table_metadata import TableMetadata, changed
from bergline.format.schema.schema import Schema
from bergline.format.types.types import LONG, NestedField
from bergline.io.fileio import FileIO

_NAMES = msgspec.json.Decoder(TableName)

_ANY_SCHEMA = Schema((NestedField(1, "id", required=False, type=LONG),), 0)


RESTRICTIONS_HOLD_S = 60.0
"""For how long a 304 is taken to mean that readers are as restricted as before: ETags of many servers are about the
metadata alone, and a policy changes without it."""


class _Restrictions(NamedTuple):
    """What a load said of the readers of a table, and when, by the clock that never goes back."""

    found: ReadRestrictions | None
    known_s: float


_NEVER = _Restrictions(None, -math.inf)


class RestTables(RestNamespaces):
    """Tables of a REST catalog, over a session; the server chooses their locations."""

    def __init__(self, session: RestSession) -> None:
        super().__init__(session)
        self._guard = TableRulesGuard(server_decides=True)
        self._loads = LoadCache()
        self._restrictions: dict[TableName, _Restrictions] = {}
        self._files = VendedFileIO(
            session.settings.storage, clock_ms=lambda: int(session.clock_s() * 1000), renew=self._renewed
        )
        self.io: FileIO = self._files

    def load_table(self, name: TableName) -> LoadedTable:
        """Load a table; a server with ETags sends it only if it changed, or if the last whole load is a while ago."""
        about, known = about_table(name), self._loads.find(name)
        is_recent = time.monotonic() - self._restrictions.get(name, _NEVER).known_s < RESTRICTIONS_HOLD_S
        headers = {"If-None-Match": known.etag} if known and known.etag and is_recent else {}
        response = self._session.calls.call(LOAD_TABLE, about, names=self._session.table_path(name), headers=headers)
        if response.status == NOT_MODIFIED and known:
            return known.table
        return self._loaded(name, response, self._session.calls.parsed(response, LoadTableResult, about))

    def pointer(self, name: TableName) -> str:
        """The metadata location, which the protocol returns only with the table."""
        return self.load_table(name).metadata_location

    def default_location(self, name: TableName) -> str:
        """The location that the server would choose for a table; nothing is created."""
        about = about_table(name)
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

    def register_table(self, name: TableName, metadata_location: str) -> LoadedTable:
        """Register a table; after a lost response, one with this metadata file or a descendant counts as ours."""
        about, request = about_table(name), RegisterTableRequest(name.name, metadata_location)

        def send() -> LoadedTable:
            names = self._session.namespace_path(name.namespace)
            return self._after_change(
                name, self._session.calls.change(REGISTER_TABLE, about, names=names, body=request)
            )

        def look() -> LoadedTable | None:
            now = self._existing(name)
            if now is not None and metadata_location in _line(now):
                return now
            if now is not None or is_view(self._session, name):
                raise name_taken_error(self._session, name)
            return None

        self._check_free(name)
        try:
            return settle(send, look, may_resend=False, waits=self._waits())
        except (AlreadyExistsError, ConflictError) as error:
            raise name_taken_error(self._session, name) from error
        except UnsettledError as error:
            raise unknown(name, "registered", error) from error

    def unregister_table(self, name: TableName) -> str:
        """Remove a table from the catalog and return its metadata location, from the server if it has the endpoint."""
        about = about_table(name)
        if not self._session.calls.has(UNREGISTER_TABLE):
            location = self.pointer(name)
            self.drop_table(name)
            return location
        if (known := self._readable(name)) is not None:
            self._guard.check_change(name, known.metadata, None, "the table unregistered")
        gone: list[str] = []

        def send() -> None:
            changed = self._session.calls.change(UNREGISTER_TABLE, about, names=self._session.table_path(name))
            gone.append(changed.content.metadata_location)

        happened(send, lambda: False, what=f"{about} was unregistered", name=str(name), waits=())
        self._loads.forget(name)
        return gone[0]

    def rename_table(self, name: TableName, new: TableName) -> None:
        before = self.load_table(name)
        self._guard.check_change(name, before.metadata, None, f"the table renamed to `{new}`")

        def look() -> bool:
            now = self._existing(new)
            return now is not None and _is_same(now, before) and self._existing(name) is None

        happened(
            lambda: self._rename(name, new),
            look,
            what=f"table `{name}` was renamed to `{new}`",
            name=str(name),
            waits=self._waits(),
            always_look=True,
            doubt_refusals=True,
        )
        self._loads.forget(name)
        self._loads.forget(new)

    def drop_table(self, name: TableName, expected: str | None = None) -> None:
        """Forget the table; its files stay.

        The protocol drops unconditionally, so an expected pointer is compared right before, and a later commit goes
        unnoticed. A caller that expects a pointer deletes files next: then the table must be gone, and an
        UnprovenDropError tells that the server did not confirm the drop.
        """
        self._drop(name, expected, purge=False)

    def _drop(self, name: TableName, expected: str | None, *, purge: bool) -> None:
        about, is_lost = about_table(name), False
        before = self._readable(name) if expected is None else self.load_table(name)
        if expected is not None and before is not None and before.metadata_location != expected:
            raise ConflictError(f"table `{name}` moved on while it was dropped", hints=["try again"])
        if before is not None:
            self._guard.check_change(name, before.metadata, None, "the table dropped")

        def send() -> None:
            nonlocal is_lost
            names, query = self._session.table_path(name), {"purgeRequested": str(purge).lower()}
            try:
                self._session.calls.change(DROP_TABLE, about, names=names, query=query)
            except ChangeInDoubtError:
                is_lost = True
                raise

        def is_gone() -> bool:
            try:
                now = self._existing(name)
            except BerglineError:
                if expected is None:
                    raise
                return False
            return now is None or (before is not None and not _is_same(now, before))

        happened(
            send,
            is_gone,
            what=f"{about} was dropped",
            name=str(name),
            waits=self._waits(),
            always_look=True,
            doubt_refusals=before is not None,
        )
        self._loads.forget(name)
        if expected is not None and is_lost:
            raise UnprovenDropError(name, expected)

    def refusals(self, table: LoadedTable, after: TableMetadata) -> Iterable[RefusedError]:
        """What does not depend on the caller's name: the server decides on the rest."""
        return self._guard.refusals(table.name, table.metadata, after)

    @property
    def keeps_dropped_tables(self) -> bool:
        """Whether the server has a trash, and purges tables itself when their time is over."""
        return self._session.calls.has(UNDROP_TABLE)

    def purge_later(self, name: TableName) -> bool:
        """Have the server drop the table and delete its files when it has been in the trash for long enough."""
        if self.keeps_dropped_tables:
            self._drop(name, None, purge=True)
        return self.keeps_dropped_tables

    def dropped_tables(self, most: int | None = None) -> list[DroppedTable]:
        if not self.keeps_dropped_tables:
            return []
        pages = self._session.pages(LIST_DROPPED_TABLES, ListDroppedTablesResponse, CallSubject("the trash", ""))
        found = (table for page in pages for table in page.tables)
        return [DroppedTable(**msgspec.structs.asdict(table)) for table in islice(found, most)]

    def undrop_table(self, name: TableName, to: TableName | None = None) -> LoadedTable:
        """Take a table out of the server's trash; after a lost response, one with its metadata file is it."""
        if not self.keeps_dropped_tables:
            raise UnsupportedError(
                f"cannot bring `{name}` back: the server keeps no dropped tables",
                hints=["`bergline serve --drop-retention 7d` does"],
            )
        new, request = to or name, UndropRequest(to)
        locations = {dropped.metadata_location for dropped in self.dropped_tables() if dropped.name == name}

        def send() -> LoadedTable:
            names = self._session.table_path(name)
            return self._after_change(
                new, self._session.calls.change(UNDROP_TABLE, about_table(new), names=names, body=request)
            )

        def look() -> LoadedTable | None:
            now = self._existing(new)
            return now if now is not None and locations & _line(now) else None

        self._check_free(new)
        try:
            return settle(send, look, may_resend=False, waits=self._waits())
        except AlreadyExistsError as error:
            raise name_taken_error(self._session, new) from error
        except UnsettledError as error:
            raise unknown(new, "taken out of the trash", error) from error

    def list_tables(self, namespace: Namespace) -> list[TableName]:
        about = CallSubject("namespace", ".".join(namespace))
        names = self._session.namespace_path(namespace)
        pages = self._session.pages(LIST_TABLES, ListTablesResponse, about, names=names)
        return sorted(name for page in pages for name in page.identifiers)

    def _rename(self, name: TableName, new: TableName) -> None:
        try:
            self._session.calls.change(RENAME_TABLE, about_table(name), body=RenameRequest(name, new))
        except AlreadyExistsError as error:
            raise name_taken_error(self._session, new) from error

    def _check_free(self, name: TableName) -> None:
        """Refuse a name that is taken, so that it is not mistaken for ours after a lost response."""
        if self._existing(name) is not None:
            raise name_taken_error(self._session, name)

    def _existing(self, name: TableName) -> LoadedTable | None:
        try:
            return self.load_table(name)
        except NotFoundError:
            return None

    def _readable(self, name: TableName) -> LoadedTable | None:
        """The table, or None if it cannot be read: it can be dropped all the same."""
        try:
            return self.load_table(name)
        except UnavailableError:
            raise
        except BerglineError:
            return None

    def _after_change(self, name: TableName, changed: ParsedResponse) -> LoadedTable:
        """The table in the response to a change; ChangeInDoubtError if it cannot be read."""
        try:
            return self._loaded(name, changed.response, changed.content)
        except BerglineError as error:
            raise ChangeInDoubtError(str(error)) from error

    def _loaded(
        self, name: TableName, response: HttpResponse, content: LoadTableResult | CommitTableResponse
    ) -> LoadedTable:
        """The table in a response; cached metadata is not parsed again."""
        about = about_table(name)
        if not content.metadata_location:
            raise FormatError(f"expected `metadata-location` in the server's response for {about}, found none")
        known = self._loads.find(name)
        if known and known.table.metadata_location == content.metadata_location:
            table = known.table
        else:
            earlier = known.table.metadata if known else None
            metadata = parse_metadata(bytes(content.metadata), f"the server's response for {about}", earlier)
            table = LoadedTable(name, metadata, content.metadata_location)
        if isinstance(content, LoadTableResult):
            self._vend(name, content, table.metadata)
        table = self._restricted(table, content)
        self._loads.remember(CachedLoad(table, response.headers.get("ETag"), len(response.body)))
        return table

    def _restricted(self, table: LoadedTable, content: LoadTableResult | CommitTableResponse) -> LoadedTable:
        """The table with what its readers must obey; responses to commits do not say it, so the last load counts."""
        if isinstance(content, LoadTableResult):
            found = read_restrictions(str(table.name), content.read_restrictions)
            self._restrictions[table.name] = _Restrictions(found, time.monotonic())
        restrictions = self._restrictions.get(table.name, _NEVER).found
        if table.metadata.read_restrictions == restrictions:
            return table
        return LoadedTable(table.name, changed(table.metadata, read_restrictions=restrictions), table.metadata_location)

    def _vend(self, name: TableName, response: LoadTableResult, metadata: TableMetadata) -> None:
        places = normalized_directories(metadata.location, metadata.properties)
        self._files.vend(_key(name), Vended(places, response.config or {}, response.storage_credentials or ()))

    def _renewed(self, key: str) -> Vended | None:
        """Fresh credentials for a table: from the credentials endpoint, or with the table."""
        name = _NAMES.decode(key)
        about, names = about_table(name), self._session.table_path(name)
        if self._session.calls.has(LOAD_CREDENTIALS):
            response = self._session.calls.call(LOAD_CREDENTIALS, about, names=names)
            found = self._session.calls.parsed(response, LoadCredentialsResponse, about).storage_credentials
            return Vended((), {}, found) if found else None
        response = self._session.calls.call(LOAD_TABLE, about, names=names)
        loaded = self._session.calls.parsed(response, LoadTableResult, about)
        return Vended((), loaded.config or {}, loaded.storage_credentials or ())


def about_table(name: TableName) -> CallSubject:
    """A table, for messages."""
    return CallSubject("table", str(name))


def unknown(name: TableName, what: str, cause: Any) -> CommitUnknownError:
    """The error for a change whose outcome is unknown."""
    return CommitUnknownError(
        f"cannot find out whether table `{name}` was {what}: {cause}", table=str(name), metadata_location=None
    )


def _is_same(table: LoadedTable, before: LoadedTable) -> bool:
    """Whether a table is the same as one loaded before, under any name."""
    if before.metadata.table_uuid is None:
        return before.metadata_location in _line(table)
    return table.metadata.table_uuid == before.metadata.table_uuid


def _line(table: LoadedTable) -> set[str]:
    """The current and previous metadata files of a table."""
    return {table.metadata_location, *(entry.metadata_file for entry in table.metadata.metadata_log)}


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
