"""What handlers work with: the catalog, cached responses and the server's settings."""

import contextlib
import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from uuid import uuid4

from bergline.catalog.identifiers import Namespace, TableName
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.catalog.protection.caller import requesting_caller
from bergline.catalog.sql.database import Connection
from bergline.catalog.sql.directories.reserved_directories import (
    Claim,
    DirectoryKind,
    DirectoryState,
    overlap,
    reserved_spelling,
)
from bergline.catalog.sql.directories.staged_tables import SqlStagedTables
from bergline.catalog.sql.directories.table_directories import TableDirectories, canonical_directory, not_apart
from bergline.catalog.sql.records import records_of, sql_store_of
from bergline.catalog.sql.rules.ref_guard import SqlRefGuard
from bergline.catalog.sql.sql_store import SqlPointerStore
from bergline.catalog.table_locations import PATH_PROPERTIES, directories_of
from bergline.errors import BerglineError, InvalidInputError, NotFoundError, RefusedError
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.governance.audit.store import SqlAuditedRequests
from bergline.governance.events.store import SqlEvents
from bergline.governance.grants.file_actions import FileActions
from bergline.governance.grants.grant import principal
from bergline.governance.grants.securable import CATALOG, Securable, SecurableKind, table_of, view_of
from bergline.governance.grants.store import SqlGrants
from bergline.governance.webhooks.addresses import WebhookAddresses
from bergline.governance.webhooks.sender import WebhookSender
from bergline.governance.webhooks.store import SqlWebhooks
from bergline.io.fenced import FencedFileIO
from bergline.io.locations import directory_location, is_absolute, scheme_of
from bergline.server.access.access import Access
from bergline.server.access.authenticator import Authenticator
from bergline.server.access.granted_changes import GrantedChanges
from bergline.server.access.granted_files import GrantedFiles
from bergline.server.access.named_files import NamedFiles
from bergline.server.access.policy import Policy
from bergline.server.access.request_audit import RequestAudit
from bergline.server.cache.load_responses import LoadResponses
from bergline.server.commits.locks import TableLocks
from bergline.server.commits.overtaken_clients import OvertakenClients
from bergline.server.commits.replayed_files import replays_same_files
from bergline.server.commits.turns import KnownTurns
from bergline.server.credentials.file_access import FileAccess
from bergline.server.credentials.s3_signer import S3Signer
from bergline.server.credentials.vending import Vending
from bergline.server.handlers.changed_metadata import ChangedMetadata
from bergline.server.http.metrics import Metrics
from bergline.server.http.request import Request
from bergline.server.http.response import Response
from bergline.server.http.settings import ServerSettings
from bergline.server.planning.filters import FilterCache
from bergline.server.planning.row_reading import RowReading
from bergline.server.planning.submitted_plans import SubmittedPlans
from bergline.server.planning.worker_pool import WorkerPool

_LOG = logging.getLogger(__name__)
_MAX_NOTED = 10_000
_OWN_FOR_S = 60.0
_METADATA_FILE = ".metadata.json"
_MAX_BYTES, _MAX_BYTES_OF_A_PART = 2000, 255  # of a path on most disks, with room for names below it

_LONGEST_LOCATION = 4096

Handler = Callable[["ServerContext", Request], Response]

_NEIGHBOURS = 25
_UNIQUE = 8


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
        self.row_reading = RowReading(catalog.io)
        self.submitted_plans = SubmittedPlans()
        self.locks = TableLocks(settings.max_waiting_commits, settings.max_held_bytes // 4)
        self.turns = KnownTurns(lambda table: self.store.read_with_turn(table)[1], settings.max_waiting_commits)
        self.overtaken = OvertakenClients(catalog, self.turns)
        self.metrics = Metrics()
        self.records = records_of(catalog)
        self.store.digests.noticed = ChangedMetadata(self.records).note
        self.staged_tables = SqlStagedTables(self.records.database, self.records.catalog_name)
        self._without_credentials: set[TableName] = set()
        self._own_directories: dict[tuple[TableName, tuple[str, ...]], float] = {}
        self.directories = TableDirectories(
            self.records, self._directories_of, typed=sql_store_of(catalog).views is not None
        )
        self.authenticator = Authenticator(
            self.records, issuers=settings.issuers, max_failed_logins=settings.max_failed_logins
        )
        self.events = SqlEvents(self.records.database, self.records.catalog_name)
        self.request_audit = RequestAudit(
            SqlAuditedRequests(self.records.database, self.records.catalog_name),
            file=settings.audit_log,
            retention_s=settings.request_audit_retention_s,
            with_reads=settings.audits_reads,
        )
        self.webhooks = SqlWebhooks(self.records.database, self.records.catalog_name, settings.secret_keys)
        self.webhook_sender = WebhookSender(WebhookAddresses(settings.webhook_allow))
        grants = SqlGrants(self.records.database, self.records.catalog_name, from_afar=True)
        policy = None if settings.policy_url is None else Policy(settings.policy_url, settings.name)
        self.access = Access(grants, policy=policy)
        rules = catalog.guard.rules if isinstance(catalog.guard, GrantedChanges) else catalog.guard
        replay_check = partial(replays_same_files, catalog.io)
        if isinstance(rules, SqlRefGuard):
            rules.replay_check = replay_check
        catalog.guard = GrantedChanges(self.access, rules, replay_check)
        self.file_access: FileAccess = GrantedFiles(self.access)
        self.named_files = NamedFiles(catalog.io, self.access, self)

    @property
    def store(self) -> SqlPointerStore:
        """The pointers; InvalidInputError after the catalog was closed."""
        return sql_store_of(self.catalog)

    def new_location(self, name: TableName, location: str | None) -> str:
        """The location of a new table or view: the client's, if that is allowed, or the catalog's default.

        Files that are there already are not looked at: they may be of a table that was dropped.
        """
        if location is None:
            return self._free_location(name, self.catalog.default_location(name))
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

    @property
    def keeps_apart(self) -> bool:
        """Whether no directory may be of two tables: credentials for one would open the other, as would a grant."""
        vends = self.signer is not None or (self.vending is not None and self.vending.is_for_one_table)
        return vends or self.access.is_active

    def claim(self, name: TableName, kind: DirectoryKind = DirectoryKind.TABLE, table_uuid: str | None = None) -> Claim:
        """What the caller of the request that is served wants directories for."""
        caller = requesting_caller()
        if caller is None:
            return Claim(kind, name, table_uuid, frozenset(), administers=True)
        by = frozenset(map(str, self.access.rules().identities(caller.name, caller.groups)))
        return Claim(kind, name, table_uuid, by, administers=caller.administers or not self.access.is_active)

    def check_new(self, claim: Claim, directories: Sequence[str], own: Sequence[str] = ()) -> None:
        """Refuse directories that the caller may not have for a table or view; `own` are those that it has."""
        if self.keeps_apart:
            self._check_home(claim, directories, own)
            with self._hiding_names(claim):
                self.directories.check_apart(claim, directories)
                self._check_trash(claim, directories)

    def check_reserved(
        self, connection: Connection, claim: Claim, directories: Sequence[str], own: Sequence[str] = ()
    ) -> None:
        """The same in the transaction that reserves them, as far as others are reserved."""
        if self.keeps_apart:
            self._check_home(claim, directories, own)
            with self._hiding_names(claim):
                taken = self.directories.reserved.find_taken(connection, claim, directories)
                if taken is not None:
                    raise not_apart(claim, taken.directory, taken.other)

    def reserve_staged(self, claim: Claim, metadata: TableMetadata, until_ms: int) -> None:
        """Reserve the directories of a table that is not created yet, for whose files there are credentials now."""
        directories, reserved, caller = table_directories(metadata), self.directories.reserved, requesting_caller()
        if self.keeps_apart and caller is not None:
            with self.records.database.changing() as connection:
                reserved.lock(connection)
                reserved.begin(connection, claim, directories)
                self.check_reserved(connection, claim, directories)
                reserved.stage(connection, claim, directories, str(principal(caller.name)), until_ms)

    def check_apart(self, name: TableName, directories: Sequence[str]) -> None:
        """Refuse directories of a table, its location first, that have files of others too."""
        if self.keeps_apart:
            claim = Claim(DirectoryKind.TABLE, name)
            with self._hiding_names(claim):
                self.directories.check_apart(claim, directories)
                self._check_trash(claim, directories)

    @contextlib.contextmanager
    def _hiding_names(self, claim: Claim) -> Iterator[None]:
        try:
            yield
        except RefusedError as error:
            if not self.access.is_active:
                raise
            raise RefusedError(  # the other table may be hidden from the caller
                f"expected a directory of its own for {claim.kind} `{claim.name}`, found one with files of another "
                "table or view",
                hints=error.hints,
            ) from error

    def _check_trash(self, claim: Claim, directories: Sequence[str]) -> None:
        places = [canonical_directory(d) for d in directories] if self.settings.drop_retention_s else []
        for dropped in self.store.table_trash.near(places):
            home = canonical_directory(dropped.metadata_location.rpartition("/")[0].removesuffix("/metadata"))
            if shared := next((place for place in places if overlap(place, home)), None):
                raise RefusedError(
                    f"expected a directory of its own for {claim.kind} `{claim.name}`, found `{shared}`, which "
                    f"overlaps the files of table `{dropped.name}`, which was dropped and may come back",
                    hints=["use another directory"],
                )

    def _check_home(self, claim: Claim, directories: Sequence[str], own: Sequence[str]) -> None:
        """Only administrators put files outside of the directory of their namespace, where there are grants."""
        if claim.administers:
            return
        namespace = claim.name.namespace
        home = self.catalog.locations.of_namespace(namespace, self.catalog.namespace_properties(namespace))
        held = [*map(reserved_spelling, own), *self.directories.reserved.former(claim)]
        for place in map(reserved_spelling, directories):
            if any(f"{place}/".startswith(f"{one}/") for one in held):
                continue
            level, inside, rest = place.partition(f"{reserved_spelling(home)}/") if home else (place, "", "")
            child = rest.partition("/")[0]
            if level or not inside or not child or self.catalog.namespace_exists((*namespace, child)):
                raise RefusedError(
                    f"expected a directory below that of namespace `{'.'.join(namespace)}` for {claim.kind} "
                    f"`{claim.name}`, found `{place}`",
                    hints=["leave the location out, or let an administrator of the catalog choose it"],
                )

    def check_namespace_location(self, namespace: Namespace, location: str | None) -> None:
        """Refuse a location of a namespace that is outside, or, where there are grants, not in its own directory."""
        self.check_location(location)
        caller = requesting_caller()
        if location is None or caller is None or caller.administers or not self.access.is_active:
            return
        home = self.catalog.locations.of_namespace(namespace, {})
        if home is None or not f"{reserved_spelling(location)}/".startswith(f"{reserved_spelling(home)}/"):
            raise RefusedError(
                f"expected a location in the directory of namespace `{'.'.join(namespace)}`, found `{location[:200]}`",
                hints=["leave it out, or let an administrator of the catalog choose it"],
            )

    def _free_location(self, name: TableName, location: str) -> str:
        """A default location, or one beside it if another has files there, or a namespace its tables."""
        if not self.keeps_apart:
            return location
        with self.records.database.reading() as connection:
            taken = self.directories.reserved.find_taken(connection, self.claim(name), [location])
        if taken is None and not self.catalog.namespace_exists((*name.namespace, name.name)):
            return location
        return f"{location}-{uuid4().hex[:_UNIQUE]}"

    def _directories_of(self, kind: DirectoryKind, name: TableName) -> Sequence[str]:
        if kind is DirectoryKind.VIEW:
            return (self.catalog.load_view(name).metadata.location,)
        return table_directories(self.catalog.load_table(name).metadata)

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

    def is_reachable(self, location: str) -> bool:
        """Whether the server may touch a location."""
        try:
            self.check_location(location)
        except BerglineError:
            return False
        return True

    def holders(self, directories: Collection[str]) -> list[Securable]:
        """The tables and views whose directories overlap some directories; the catalog for those that are gone."""
        found = self.directories.holders(directories)
        return [_securable(one.kind, one.name) if one.state is DirectoryState.HELD else CATALOG for one in found]

    @contextlib.contextmanager
    def concealing(self, request: Request) -> Iterator[None]:
        """In the block, names that the caller may not know are left out of errors."""
        try:
            yield
        except BerglineError as error:
            told = self.concealed(request, error)
            if told is error:
                raise
            raise told from error

    def concealed(self, request: Request, error: Exception) -> Exception:
        """An error without names that the caller may not know."""
        if not isinstance(error, BerglineError):
            return error
        told = self.access.conceal_neighbour(request.principal, request.groups, error)
        if told is not error:
            _LOG.info("%s was told less than: %s", request.principal, error)
        if not isinstance(told, NotFoundError):
            return told
        return self.access.conceal(request.in_path(told), lambda: self._names_seen(request))

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

    def file_actions(self, request: Request, name: TableName) -> FileActions:
        """What the caller, who may read a table, may do with its files."""
        return self.file_access.actions(request.principal, request.groups, name)

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
        self.check_new(self.claim(name, table_uuid=metadata.table_uuid), directories)

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


def _securable(kind: DirectoryKind, name: TableName) -> Securable:
    return view_of(name) if kind is DirectoryKind.VIEW else table_of(name)


def _is_too_long(location: str) -> bool:
    parts = location.encode().split(b"/")
    return sum(map(len, parts)) > _MAX_BYTES or max(map(len, parts)) > _MAX_BYTES_OF_A_PART
