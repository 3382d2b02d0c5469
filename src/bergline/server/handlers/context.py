"""What handlers work with: the catalog, cached responses and the server's settings."""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from bergline.catalog.access.securable import SecurableKind
from bergline.catalog.identifiers import TableName
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.catalog.sql.governance.events import SqlEvents
from bergline.catalog.sql.governance.grants import SqlGrants
from bergline.catalog.sql.governance.ref_guard import SqlRefGuard
from bergline.catalog.sql.governance.staged_tables import SqlStagedTables
from bergline.catalog.sql.governance.webhooks import SqlWebhooks
from bergline.catalog.sql.records import records_of, sql_store_of
from bergline.catalog.sql.sql_store import SqlPointerStore
from bergline.catalog.sql.table_directories import TableDirectories, canonical_directory, overlap
from bergline.catalog.table_locations import PATH_PROPERTIES, directories_of
from bergline.errors import InvalidInputError, NotFoundError, RefusedError
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.fenced import FencedFileIO
from bergline.io.locations import directory_location, is_absolute, scheme_of
from bergline.server.access.access import Access
from bergline.server.access.authenticator import Authenticator
from bergline.server.access.granted_changes import GrantedChanges
from bergline.server.access.granted_files import GrantedFiles
from bergline.server.cache.load_responses import LoadResponses
from bergline.server.commits.locks import TableLocks
from bergline.server.commits.overtaken_clients import OvertakenClients
from bergline.server.commits.replayed_files import replays_same_files
from bergline.server.commits.turns import KnownTurns
from bergline.server.credentials.file_access import FileAccess
from bergline.server.credentials.s3_signer import S3Signer
from bergline.server.credentials.vending import Vending
from bergline.server.delivery.addresses import WebhookAddresses
from bergline.server.delivery.sender import WebhookSender
from bergline.server.http.metrics import Metrics
from bergline.server.http.request import Request
from bergline.server.http.response import Response
from bergline.server.http.settings import ServerSettings
from bergline.server.planning.filters import FilterCache
from bergline.server.planning.submitted_plans import SubmittedPlans
from bergline.server.planning.worker_pool import WorkerPool

_MAX_NOTED = 10_000
_OWN_FOR_S = 60.0
_METADATA_FILE = ".metadata.json"
_MAX_BYTES, _MAX_BYTES_OF_A_PART = 2000, 255  # of a path on most disks, with room for names below it

_LONGEST_LOCATION = 4096

Handler = Callable[["ServerContext", Request], Response]

_NEIGHBOURS = 25


class ServerContext:
    """One catalog as it is served."""

    def __init__(
        self,
        catalog: PointerCatalog,
        settings: ServerSettings,
        vending: Vending | None = None,
        signer: S3Signer | None = None,
    ) -> None:
        self.catalog = catalog
        self.settings = settings
        self.vending = vending
        self.signer = signer
        self.loads = LoadResponses(settings.table_config)
        self.filters = FilterCache()
        self.plan_workers = WorkerPool(catalog.io, settings.planning_processes)
        self.submitted_plans = SubmittedPlans()
        self.locks = TableLocks(settings.max_waiting_commits, settings.max_held_bytes // 4)
        self.turns = KnownTurns(lambda table: self.store.read_with_turn(table)[1], settings.max_waiting_commits)
        self.overtaken = OvertakenClients(catalog, self.turns)
        self.metrics = Metrics()
        self.records = records_of(catalog)
        self.staged_tables = SqlStagedTables(self.records.database, self.records.catalog_name)
        self._without_credentials: set[TableName] = set()
        self._own_directories: dict[tuple[TableName, tuple[str, ...]], float] = {}
        self._directories = TableDirectories(
            self.records, lambda name: table_directories(catalog.load_table(name).metadata)
        )
        self.authenticator = Authenticator(self.records, issuers=settings.issuers)
        self.events = SqlEvents(self.records.database, self.records.catalog_name)
        self.webhooks = SqlWebhooks(self.records.database, self.records.catalog_name)
        self.webhook_sender = WebhookSender(WebhookAddresses(settings.webhook_allow))
        self.access = Access(SqlGrants(self.records.database, self.records.catalog_name, from_afar=True))
        rules = catalog.guard.rules if isinstance(catalog.guard, GrantedChanges) else catalog.guard
        if isinstance(rules, SqlRefGuard):
            rules.replay_check = partial(replays_same_files, catalog.io)
        catalog.guard = GrantedChanges(self.access, rules)
        self.file_access: FileAccess = GrantedFiles(self.access)

    @property
    def store(self) -> SqlPointerStore:
        """The pointers; InvalidInputError after the catalog was closed."""
        return sql_store_of(self.catalog)

    def new_location(self, name: TableName, location: str | None) -> str:
        """The location of a new table or view: the client's, if that is allowed, or the catalog's default.

        Files that are there already are not looked at: they may be of a table that was dropped.
        """
        if location is None:
            return self.catalog.default_location(name)
        if not is_absolute(location):
            raise InvalidInputError(f"expected an absolute location, found `{location[:200]}`")
        self.check_directory(location)
        return location

    def check_properties(self, properties: Mapping[str, str]) -> None:
        """Refuse properties of a table or view that place its files outside."""
        for key in PATH_PROPERTIES:
            place = properties.get(key)
            if place and not is_absolute(place):
                raise InvalidInputError(f"expected an absolute location for property `{key}`, found `{place[:200]}`")
            if place:
                self.check_directory(place)

    def check_directory(self, location: str) -> None:
        """RefusedError for a directory that is outside, or that contains all other tables."""
        self.check_location(location)
        scheme, home = scheme_of(location), self.settings.warehouse
        is_whole = scheme != "file" and not directory_location(location).key
        if is_whole or (
            home is not None and f"{canonical_directory(home)}/".startswith(f"{canonical_directory(location)}/")
        ):
            raise RefusedError(
                f"expected a directory below the warehouse, found `{location[:200]}`, which is all of it",
                hints=["other tables lie there: give this one a directory of its own"],
            )

    def check_apart(self, name: TableName, directories: Sequence[str]) -> None:
        """Refuse directories, the table's location first, that have files of other tables too.

        Credentials for one table would open those, and so would a grant on it.
        """
        vends = self.signer is not None or (self.vending is not None and self.vending.is_for_one_table)
        if not vends and not self.access.is_active:
            return
        try:
            self._check_apart(name, directories)
        except RefusedError as error:
            if not self.access.is_active:
                raise
            raise RefusedError(  # the other table may be hidden from the caller
                f"expected a directory of its own for table `{name}`, found one with files of another table",
                hints=error.hints,
            ) from error

    def _check_apart(self, name: TableName, directories: Sequence[str]) -> None:
        self._directories.check_apart(name, directories)
        places = [canonical_directory(d) for d in directories] if self.settings.drop_retention_s else []
        for dropped in self.store.bin.near(places):
            home = canonical_directory(dropped.metadata_location.rpartition("/")[0].removesuffix("/metadata"))
            if shared := next((place for place in places if overlap(place, home)), None):
                raise RefusedError(
                    f"expected a directory of its own for table `{name}`, found `{shared}`, which overlaps "
                    f"the files of table `{dropped.name}`, which was dropped and may come back",
                    hints=["use another directory"],
                )

    def check_own(self, name: TableName, directories: Sequence[str]) -> None:
        """RefusedError for directories that are not this table's alone; others are not checked again for a minute."""
        if self.owns_certainly(name, directories):
            return
        for directory in directories:
            self.check_directory(directory)
        self.check_apart(name, directories)
        if len(self._own_directories) >= _MAX_NOTED:
            self._own_directories.clear()
        self._own_directories[name, tuple(directories)] = time.monotonic() + _OWN_FOR_S

    def owns_certainly(self, name: TableName, directories: Sequence[str]) -> bool:
        """Whether directories were found to be this table's alone a moment ago."""
        return time.monotonic() < self._own_directories.get((name, tuple(directories)), 0.0)

    @contextlib.contextmanager
    def concealing(self, request: Request) -> Iterator[None]:
        """In the block, names that the caller may not know are left out of the error for a missing one."""
        try:
            yield
        except NotFoundError as error:
            raise self.concealed(request, error) from error

    def concealed(self, request: Request, error: Exception) -> Exception:
        """An error without names that the caller may not know."""
        if not isinstance(error, NotFoundError):
            return error
        return self.access.conceal(request.in_path(error), lambda: self._names_seen(request))

    def _names_seen(self, request: Request) -> list[str]:
        """The tables or views that the caller sees in the namespace of a request for one: all, or the next ones.

        Of names that are not all seen the next ones are not looked for: how many that are would tell of the others.
        """
        is_view = request.kind == "view"
        pointers = self.store.views if is_view else self.store
        if request.endpoint.method == "HEAD" or request.kind not in request.names or pointers is None:
            return []
        name, kind = request.table, SecurableKind.VIEW if is_view else SecurableKind.TABLE
        seen = self.access.newest(request.principal, request.groups).names_seen(kind, name.namespace)
        if seen is None:
            return list(map(str, pointers.names_around(name, _NEIGHBOURS)))
        return list(map(str, pointers.names_among(name.namespace, seen, None, None)))

    def may_write(self, request: Request, name: TableName) -> bool:
        """Whether the caller, who may read a table, may also write and delete its files."""
        return self.file_access.may_write(request.principal, request.groups, name)

    def note_missing_credentials(self, name: TableName) -> bool:
        """Whether this is the first time that there are no credentials for a table."""
        if name in self._without_credentials:
            return False
        if len(self._without_credentials) >= _MAX_NOTED:
            self._without_credentials.clear()
        self._without_credentials.add(name)
        return True

    def check_table(self, name: TableName, metadata: TableMetadata) -> None:
        """Refuse the directories of a table that is to be created."""
        directories = table_directories(metadata)
        for directory in directories:
            self.check_directory(directory)
        self.check_apart(name, directories)

    def check_metadata(self, location: str) -> None:
        """Refuse a metadata file that is outside, or whose name is not that of one: it might be of any size."""
        self.check_location(location)
        if _METADATA_FILE not in location.rpartition("/")[2]:
            raise InvalidInputError(f"expected a metadata file (…{_METADATA_FILE}), found `{location[:200]}`")

    def check_location(self, location: str | None) -> None:
        """RefusedError for a location that the server may not touch."""
        if location is None:
            return
        if not location:
            raise InvalidInputError("expected a location, found an empty text")
        if len(location) > _LONGEST_LOCATION:
            most, size = _LONGEST_LOCATION, len(location)
            raise InvalidInputError(
                f"expected a location of up to {most} characters, found {size} in `{location[:80]}…`"
            )
        if scheme_of(location) == "file" and _is_too_long(location):
            raise InvalidInputError(f"expected a location that a disk can have, found `{location[:200]}…`")
        if isinstance(self.catalog.io, FencedFileIO):
            self.catalog.io.check(location)


def table_directories(metadata: TableMetadata) -> tuple[str, ...]:
    """The directories of a table's files, its location first."""
    return directories_of(metadata.location, metadata.properties)


def _is_too_long(location: str) -> bool:
    parts = location.encode().split(b"/")
    return sum(map(len, parts)) > _MAX_BYTES or max(map(len, parts)) > _MAX_BYTES_OF_A_PART
