"""Tables of a REST catalog by name; `client_commit` changes them."""

from typing import Any

import msgspec

from bergline.catalog.catalog import LoadedTable
from bergline.catalog.identifiers import Namespace, TableName
from bergline.catalog.rest.client.calls import NOT_MODIFIED, ChangeResponse
from bergline.catalog.rest.client.errors import About
from bergline.catalog.rest.client.files import Vended, VendedFileIO, places_of
from bergline.catalog.rest.client.namespaces import RestNamespaces
from bergline.catalog.rest.client.retries import LostError
from bergline.catalog.rest.client.session import RestSession
from bergline.catalog.rest.client.settle import UnsettledError, happened, settle
from bergline.catalog.rest.client.table_cache import CachedLoad, LoadCache
from bergline.catalog.rest.client.taken_names import is_view, taken
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
    LIST_TABLES,
    LOAD_CREDENTIALS,
    LOAD_TABLE,
    REGISTER_TABLE,
    RENAME_TABLE,
    UNREGISTER_TABLE,
)
from bergline.errors import (
    AlreadyExistsError,
    BerglineError,
    CommitUnknownError,
    ConflictError,
    FormatError,
    NotFoundError,
    UnavailableError,
)
from bergline.format.metadata.json import parse_metadata
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.schema.schema import Schema
from bergline.format.types.types import LONG, NestedField
from bergline.io.fileio import FileIO

_ANY_SCHEMA = Schema((NestedField(1, "id", required=False, type=LONG),), 0)


class RestTables(RestNamespaces):
    """Tables over a session; a server says itself where new ones go."""

    def __init__(self, session: RestSession) -> None:
        super().__init__(session)
        self._loads = LoadCache()
        self._files = VendedFileIO(
            session.settings.storage, clock_ms=lambda: int(session.clock_s() * 1000), renew=self._renewed
        )
        self.io: FileIO = self._files

    def load_table(self, name: TableName) -> LoadedTable:
        """The table now; a server that marks its answers sends only what changed since the last time."""
        about, known = about_table(name), self._loads.find(name)
        headers = {"If-None-Match": known.etag} if known and known.etag else {}
        answer = self._session.calls.call(LOAD_TABLE, about, names=self._session.table_path(name), headers=headers)
        if answer.status == NOT_MODIFIED and known:
            return known.table
        return self._loaded(name, answer, self._session.calls.parsed(answer, LoadTableResult, about))

    def pointer(self, name: TableName) -> str:
        """Where the table's metadata is now; the protocol tells it with the table."""
        return self.load_table(name).metadata_location

    def default_location(self, name: TableName) -> str:
        """Where the server would put a table of this name; nothing is created."""
        about = about_table(name)
        request = CreateTableRequest(name=name.name, schema=_ANY_SCHEMA, stage_create=True)
        names = self._session.namespace_path(name.namespace)
        try:
            answer = self._session.calls.call(CREATE_TABLE, about, names=names, body=request)
        except (AlreadyExistsError, ConflictError) as error:
            raise taken(self._session, name) from error
        except LostError as error:  # staging changes nothing, whether it happened or not
            raise UnavailableError(str(error)) from error
        staged = self._session.calls.parsed(answer, LoadTableResult, about)
        metadata = parse_metadata(bytes(staged.metadata), f"the server's answer for {about}")
        self._vend(name, staged, metadata)
        return metadata.location

    def register_table(self, name: TableName, metadata_location: str) -> LoadedTable:
        """A table by its metadata file; after a lost answer one that leads there, or came from it, is taken for it."""
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
                raise taken(self._session, name)
            return None

        self._check_free(name)
        try:
            return settle(send, look, may_resend=False, waits=self._waits())
        except (AlreadyExistsError, ConflictError) as error:
            raise taken(self._session, name) from error
        except UnsettledError as error:
            raise unknown(name, "registered", error) from error

    def unregister_table(self, name: TableName) -> str:
        """Forget the table, and say where its metadata was: by the server itself where it can tell."""
        about = about_table(name)
        if not self._session.calls.has(UNREGISTER_TABLE):
            location = self.pointer(name)
            self.drop_table(name)
            return location
        gone: list[str] = []

        def send() -> None:
            changed = self._session.calls.change(UNREGISTER_TABLE, about, names=self._session.table_path(name))
            gone.append(changed.content.metadata_location)

        happened(send, lambda: False, what=f"{about} was unregistered", name=str(name), waits=())
        self._loads.forget(name)
        return gone[0]

    def rename_table(self, name: TableName, new: TableName) -> None:
        """Give a table another name."""
        before = self.load_table(name)

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

        The protocol drops whatever is there, so an expected pointer is compared right before, and no later commit is
        noticed. Who expects one deletes files next: then the server must say that the table was dropped, and have it
        no more. One that is gone after a lost answer may as well have been renamed.
        """
        about, is_lost = about_table(name), False
        before = self._readable(name) if expected is None else self.load_table(name)
        if expected is not None and before is not None and before.metadata_location != expected:
            raise ConflictError(f"table `{name}` moved on while it was dropped", hints=["try again"])

        def send() -> None:
            nonlocal is_lost
            names, query = self._session.table_path(name), {"purgeRequested": "false"}
            try:
                self._session.calls.change(DROP_TABLE, about, names=names, query=query)
            except LostError:
                is_lost = True
                raise

        def is_gone() -> bool:
            try:
                now = self._existing(name)
            except BerglineError:
                if expected is None:
                    raise
                return False
            gone = now is None or (before is not None and not _is_same(now, before))
            return gone and (expected is None or not is_lost)

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

    def list_tables(self, namespace: Namespace) -> list[TableName]:
        """Tables in a namespace."""
        about = About("namespace", ".".join(namespace))
        names = self._session.namespace_path(namespace)
        pages = self._session.pages(LIST_TABLES, ListTablesResponse, about, names=names)
        return sorted(name for page in pages for name in page.identifiers)

    def _rename(self, name: TableName, new: TableName) -> None:
        try:
            self._session.calls.change(RENAME_TABLE, about_table(name), body=RenameRequest(name, new))
        except AlreadyExistsError as error:
            raise taken(self._session, new) from error

    def _check_free(self, name: TableName) -> None:
        """Refuse a name that a table has, so that it is not taken for one of ours after a lost answer."""
        if self._existing(name) is not None:
            raise taken(self._session, name)

    def _existing(self, name: TableName) -> LoadedTable | None:
        try:
            return self.load_table(name)
        except NotFoundError:
            return None

    def _readable(self, name: TableName) -> LoadedTable | None:
        """The table, or None for one that cannot be read: it can be dropped all the same."""
        try:
            return self.load_table(name)
        except UnavailableError:
            raise
        except BerglineError:
            return None

    def _after_change(self, name: TableName, changed: ChangeResponse) -> LoadedTable:
        """The table in the answer to a change; one that cannot be read says nothing of what happened."""
        try:
            return self._loaded(name, changed.answer, changed.content)
        except BerglineError as error:
            raise LostError(str(error)) from error

    def _loaded(
        self, name: TableName, answer: HttpResponse, content: LoadTableResult | CommitTableResponse
    ) -> LoadedTable:
        """The table in an answer; metadata that is known is not parsed again."""
        about = about_table(name)
        if not content.metadata_location:
            raise FormatError(f"expected `metadata-location` in the server's answer for {about}, found none")
        known = self._loads.find(name)
        if known and known.table.metadata_location == content.metadata_location:
            table = known.table
        else:
            metadata = parse_metadata(bytes(content.metadata), f"the server's answer for {about}")
            table = LoadedTable(name, metadata, content.metadata_location)
        if isinstance(content, LoadTableResult):
            self._vend(name, content, table.metadata)
        self._loads.remember(CachedLoad(table, answer.headers.get("ETag"), len(answer.body)))
        return table

    def _vend(self, name: TableName, answer: LoadTableResult, metadata: TableMetadata) -> None:
        places = places_of(metadata.location, metadata.properties)
        self._files.vend(_key(name), Vended(places, answer.config or {}, answer.storage_credentials or ()))

    def _renewed(self, key: str) -> Vended | None:
        """Fresh credentials for a table: from their own endpoint, or with the table."""
        name = msgspec.json.decode(key, type=TableName)
        about, names = about_table(name), self._session.table_path(name)
        if self._session.calls.has(LOAD_CREDENTIALS):
            answer = self._session.calls.call(LOAD_CREDENTIALS, about, names=names)
            found = self._session.calls.parsed(answer, LoadCredentialsResponse, about).storage_credentials
            return Vended((), {}, found) if found else None
        answer = self._session.calls.call(LOAD_TABLE, about, names=names)
        loaded = self._session.calls.parsed(answer, LoadTableResult, about)
        return Vended((), loaded.config or {}, loaded.storage_credentials or ())


def about_table(name: TableName) -> About:
    """A table in words."""
    return About("table", str(name))


def unknown(name: TableName, what: str, cause: Any) -> CommitUnknownError:
    """A change that cannot be found out about."""
    return CommitUnknownError(
        f"cannot find out whether table `{name}` was {what}: {cause}", table=str(name), metadata_location=None
    )


def _is_same(table: LoadedTable, before: LoadedTable) -> bool:
    """Whether a table is the one that was loaded before, under whatever name."""
    if before.metadata.table_uuid is None:
        return before.metadata_location in _line(table)
    return table.metadata.table_uuid == before.metadata.table_uuid


def _line(table: LoadedTable) -> set[str]:
    """The metadata files that a table has and had."""
    return {table.metadata_location, *(entry.metadata_file for entry in table.metadata.metadata_log)}


def _key(name: TableName) -> str:
    return msgspec.json.encode(name).decode()
