"""Commits of a REST catalog: the server checks requirements and applies updates; lost responses are settled.

A server that is bergline's own also grants turns, by which others let a commit go first.
"""

import contextlib
import time
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

import msgspec

from bergline.catalog.catalog import (
    Committed,
    Conflicted,
    LoadedTable,
    Outcome,
    TableChange,
    Unknown,
    added_snapshots,
    check_changed_tables,
    shows_all_since,
)
from bergline.catalog.identifiers import TableName
from bergline.catalog.metadata_files import table_files
from bergline.catalog.protection.table_rules import rule_texts
from bergline.catalog.rest.client.calls import RequestKey
from bergline.catalog.rest.client.error_responses import CallSubject
from bergline.catalog.rest.client.name_conflicts import is_view, name_taken_error
from bergline.catalog.rest.client.requirements import all_requirements
from bergline.catalog.rest.client.retries import ChangeInDoubtError
from bergline.catalog.rest.client.session import RestSession
from bergline.catalog.rest.client.settle import UnsettledError, settle
from bergline.catalog.rest.client.tables import RestTables
from bergline.catalog.rest.protocol.bodies import CommitTableRequest, CommitTransactionRequest
from bergline.catalog.rest.protocol.endpoints import COMMIT_TABLE, COMMIT_TRANSACTION, GIVE_BACK_TURN, TAKE_TURN
from bergline.catalog.rest.protocol.may_move import MAY_MOVE_HEADER
from bergline.catalog.rest.protocol.table_turns import TURN_HEADER, TakeTurnRequest, TakeTurnResponse
from bergline.catalog.turns import turn_holder
from bergline.errors import (
    AlreadyExistsError,
    BerglineError,
    ConflictError,
    InvalidInputError,
    UnavailableError,
    UnsupportedError,
)
from bergline.format.metadata.applied_changes import may_be_step
from bergline.format.metadata.apply import apply_updates
from bergline.format.metadata.refs import MAIN
from bergline.format.metadata.requirements import (
    AssertCreate,
    AssertRefRetention,
    AssertRefSnapshotId,
    Requirement,
    check_requirements,
)
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.metadata.updates import (
    AddEncryptionKey,
    AddPartitionSpec,
    AddSchema,
    AddSnapshot,
    AddSortOrder,
    AssignUuid,
    RemoveSnapshotRef,
    SetCurrentSchema,
    SetDefaultSortOrder,
    SetDefaultSpec,
    SetLocation,
    SetPartitionStatistics,
    SetProperties,
    SetSnapshotRef,
    SetStatistics,
    Update,
    UpgradeFormatVersion,
    set_ref,
)
from bergline.io.locations import scheme_of

LoadedTables = tuple[LoadedTable, ...]
_SentChange = tuple[TableChange, CommitTableRequest[Update], LoadedTable]
"""A change, what was sent for it, and the table as it is now."""
_MOST_VERSIONS = 100


class RestCommits:
    """Commits to tables; the server checks requirements, not the whole base."""

    def __init__(self, session: RestSession, tables: RestTables) -> None:
        self._session = session
        self._tables = tables
        self.atomic_tables = session.calls.has(COMMIT_TRANSACTION)

    def create(self, name: TableName, metadata: TableMetadata) -> LoadedTable:
        """Create a table with its content; after a lost response it is recognized by its UUID."""
        request = CommitTableRequest[Update]((AssertCreate(),), creation_updates(metadata), name)
        self._check_refs(request.updates)
        self._tables.guard.check_new(name, metadata)

        def look() -> LoadedTable | None:
            now = self._tables.existing(name)
            if now is not None and now.metadata.table_uuid == metadata.table_uuid:
                return now
            if now is not None or is_view(self._session, name):
                raise name_taken_error(self._session, name)
            return None

        try:
            created = settle(
                lambda: self._post(name, request), look, may_resend=True, waits=self._session.waits(metadata.properties)
            )
        except (AlreadyExistsError, ConflictError) as error:
            raise name_taken_error(self._session, name) from error
        except UnsettledError as error:
            raise self._tables.unknown(name, "created", error) from error
        return created if scheme_of(metadata.location) == "file" else self._with_credentials(created)

    def commit(self, changes: tuple[TableChange, ...]) -> Outcome:
        """Send the changes; Unknown only if the outcome cannot be settled."""
        check_changed_tables([change.base.name for change in changes], "this server", atomic=self.atomic_tables)
        for change in changes:
            self._check_refs(change.updates)
            self._check_rules(change)
        retention = self._session.asserts_retention
        required = {c.base.name: all_requirements(c, asserts_retention=retention) for c in changes}
        requests = tuple(CommitTableRequest[Update](required[c.base.name], c.updates, c.base.name) for c in changes)
        key = self._session.calls.new_key()
        try:
            return Committed(
                settle(
                    lambda: self._send(changes, requests, key),
                    lambda: self._look(changes, requests),
                    may_resend=any(_happens_once(c, w) for c, w in zip(changes, requests, strict=True)),
                    waits=self._session.waits(changes[0].base.metadata.properties),
                    key=key,
                    looks_like_others=not any(map(added_snapshots, changes)),
                )
            )
        except ConflictError as error:
            return Conflicted(error)
        except InvalidInputError as error:
            if not self._moved_on(changes):
                raise
            return Conflicted(
                ConflictError(str(error))
            )  # what was valid on the base need not be valid on what came since
        except UnsettledError as error:
            return Unknown(changes[0].base.name, None, f"{error}{_how_to_tell(changes)}")

    def _check_refs(self, updates: tuple[Update, ...]) -> None:
        """Refuse refs on a server that would commit to `main` instead."""
        if self._session.keeps_refs:
            return
        for update in updates:
            if isinstance(update, SetSnapshotRef | RemoveSnapshotRef) and update.ref_name != MAIN:
                raise UnsupportedError(
                    f"expected a change to `{MAIN}`, found one to `{update.ref_name}`: "
                    "tables on Nessie have no branches and tags of their own",
                    hints=["Nessie has branches of the whole catalog: connect with the property `prefix`, its branch"],
                )

    def _check_rules(self, change: TableChange) -> None:
        """Enforce the rules of the table as it was loaded; a server may have stricter ones, or none."""
        base = change.base
        if not (rule_texts(base.metadata.properties) or any(isinstance(u, SetProperties) for u in change.updates)):
            return
        try:
            after = apply_updates(base.metadata, change.updates, base_location=None, now_ms=time.time_ns() // 1_000_000)
        except BerglineError:  # the server says what is wrong with it
            return
        self._tables.guard.check_change(base.name, base.metadata, after)

    def _send(
        self, changes: tuple[TableChange, ...], requests: tuple[CommitTableRequest[Update], ...], key: RequestKey | None
    ) -> LoadedTables:
        if len(changes) == 1:
            table = self._post(changes[0].base.name, requests[0], self._rebase_header(changes), key)
            if not _is_response_to(changes[0], table):
                raise ChangeInDoubtError(f"the server's response for {_about(table.name)} lacks what was sent")
            return (table,)
        about = _about(changes[0].base.name)
        body = CommitTransactionRequest(requests)
        headers = self._rebase_header(changes) | _turn_headers()
        self._session.calls.change(COMMIT_TRANSACTION, about, headers=headers, body=body, key=key)
        now = self._now(changes)
        if all(isinstance(t, LoadedTable) and _is_at(t, c.base) for t, c in zip(now, changes, strict=True)):
            raise ChangeInDoubtError(f"{self._session.settings.uri} said that tables were changed, and none has moved")
        found = [(c, t) for c, t in zip(changes, now, strict=True) if isinstance(t, LoadedTable) and added_snapshots(c)]
        if found and not any(_has_snapshot(change, table) for change, table in found):
            raise ChangeInDoubtError(
                f"{self._session.settings.uri} said that tables were changed, and none has what was added"
            )
        return _after(changes, now)

    def _post(
        self,
        name: TableName,
        request: CommitTableRequest[Update],
        headers: dict[str, str] | None = None,
        key: RequestKey | None = None,
    ) -> LoadedTable:
        names = self._session.table_path(name)
        about, sent = _about(name), {**(headers or {}), **_turn_headers()}
        changed = self._session.calls.change(COMMIT_TABLE, about, names=names, headers=sent, body=request, key=key)
        return self._tables.after_change(name, changed)

    def _rebase_header(self, changes: tuple[TableChange, ...]) -> dict[str, str]:
        """The header that tells the server whether it may rebase a new snapshot onto another head.

        It may not if this client has checked the snapshot against its base. The header is sent with every commit,
        because it also tells the server that this client asks for turns itself.
        """
        if not self._session.rebases_appends:
            return {}
        return {MAY_MOVE_HEADER: "true" if len(changes) == 1 and changes[0].can_rebase else "false"}

    def _now(self, changes: tuple[TableChange, ...]) -> tuple[LoadedTable | BerglineError, ...]:
        """Load the current tables, each by itself: one that cannot be loaded does not hide the others."""
        found: list[LoadedTable | BerglineError] = []
        for change in changes:
            try:
                found.append(self._tables.load(change.base.name))
            except BerglineError as error:
                found.append(error)
        return tuple(found)

    def _look(
        self, changes: tuple[TableChange, ...], requests: tuple[CommitTableRequest[Update], ...]
    ) -> LoadedTables | None:
        """The tables if the changes were committed: all or none, so any new snapshot is proof."""
        now = self._now(changes)
        loaded = [(c, w, t) for c, w, t in zip(changes, requests, now, strict=True) if isinstance(t, LoadedTable)]
        telling = [(change, table) for change, _, table in loaded if added_snapshots(change)]
        if telling and any(_has_snapshot(change, table) for change, table in telling):
            return _after(changes, now)
        for table in now:
            if isinstance(table, BerglineError):
                raise table
        if not telling:
            return self._look_at_versions(loaded)
        rebases = len(changes) == 1 and self._session.rebases_appends and changes[0].can_rebase
        for change, request, table in loaded:
            try:
                check_requirements(table.metadata, _excluding(request, rebases=rebases), str(table.name))
            except ConflictError as error:
                if _is_replaced(change, table):
                    raise UnsettledError(str(error), no_trace=True) from error
                if any(shows_all_since(c.base.metadata, t.metadata) for c, t in telling):
                    raise
                raise UnsettledError(f"{error}, and snapshots that came since were expired") from error
        return None

    def _look_at_versions(self, loaded: Sequence[_SentChange]) -> LoadedTables | None:
        """The tables if changes without snapshots were committed.

        A requirement that fails proves nothing by itself, because it also fails if the change was made. Changes were
        not made only if one of them is not among the steps between the versions of its table since then.
        """
        if all(_shows(change, table) for change, _, table in loaded):
            return tuple(table for _, _, table in loaded)
        made = [self._was_made(*one) for one in loaded]
        if False in made:
            for _, request, table in loaded:
                check_requirements(table.metadata, request.requirements, str(table.name))
            return None
        if all(made):
            return tuple(table for _, _, table in loaded)
        for change, _, table in loaded:
            if _is_replaced(change, table):
                raise UnsettledError(f"table `{table.name}` was dropped and re-created", no_trace=True)
            if change.base.metadata_location not in _line(table):
                raise UnsettledError(
                    f"table `{table.name}` changed since, and the server keeps no history that tells how"
                )
        names = ", ".join(f"`{table.name}`" for _, _, table in loaded)
        raise UnsettledError(f"{names} changed since, and the versions in between do not tell how", no_trace=True)

    def _was_made(self, change: TableChange, request: CommitTableRequest[Update], now: LoadedTable) -> bool | None:
        """Whether a change is a step between two versions of a table since its base; None if these do not tell."""
        versions = self._versions(change.base, now)
        if versions is None:
            return None
        if any(may_be_step(old, new, request.requirements, request.updates) for old, new in pairwise(versions)):
            return True
        # a server that moves appends also writes several commits as one version
        return None if len(versions) > 1 and self._session.rebases_appends else False

    def _versions(self, base: LoadedTable, now: LoadedTable) -> list[TableMetadata] | None:
        """All versions of a table from the base on; None if one of them is not known or cannot be read."""
        files = _line(now)
        if base.metadata_location not in files:
            return None
        since = files[files.index(base.metadata_location) + 1 :]
        if not since:
            return [base.metadata]
        if len(since) > _MOST_VERSIONS:
            return None
        reading = table_files(self._tables.io)
        try:
            return [base.metadata, *(reading.load(location) for location in since[:-1]), now.metadata]
        except BerglineError:
            return None

    def _moved_on(self, changes: tuple[TableChange, ...]) -> bool:
        now = zip(self._now(changes), changes, strict=True)
        return any(isinstance(table, LoadedTable) and not _is_at(table, change.base) for table, change in now)

    def _with_credentials(self, created: LoadedTable) -> LoadedTable:
        """Load storage credentials, which the response to a commit does not include."""
        try:
            return self._tables.load(created.name)
        except BerglineError:
            return created


def _about(name: TableName) -> CallSubject:
    return CallSubject("table", str(name))


def _turn_headers() -> dict[str, str]:
    """The header that tells the server that a commit is made in a turn that it has granted."""
    holder = turn_holder()
    return {} if holder is None else {TURN_HEADER: holder}


def _how_to_tell(changes: tuple[TableChange, ...]) -> str:
    """A hint on how to check later whether changes were committed: one snapshot is enough."""
    snapshots = [f"{c.base.name} has snapshot {min(added)}" for c in changes if (added := added_snapshots(c))]
    return f"; it happened if {snapshots[0]}" if snapshots else ""


def _after(changes: tuple[TableChange, ...], now: tuple[LoadedTable | BerglineError, ...]) -> LoadedTables:
    """The tables after changes that were certainly committed, including those that cannot be loaded now."""
    return tuple(
        table if isinstance(table, LoadedTable) else msgspec.structs.replace(change.base, metadata=_applied(change))
        for change, table in zip(changes, now, strict=True)
    )


def _is_at(now: LoadedTable, base: LoadedTable) -> bool:
    return now.metadata_location == base.metadata_location


def _is_response_to(change: TableChange, now: LoadedTable) -> bool:
    """Whether a response belongs to this very change, and was not replayed by some cache."""
    uuid = change.base.metadata.table_uuid
    is_same = uuid is None or uuid == now.metadata.table_uuid
    return is_same and (not added_snapshots(change) or _has_snapshot(change, now))


def _has_snapshot(change: TableChange, now: LoadedTable) -> bool:
    """Whether a table has a snapshot that a change adds, or a descendant of it."""
    added, known = added_snapshots(change), now.metadata.snapshots_by_id
    return not added.isdisjoint(known) or any(s.parent_snapshot_id in added for s in known.values())


def _shows(change: TableChange, now: LoadedTable) -> bool:
    """Whether a change without snapshots is visible: the table changed to what the change leads to."""
    if _is_at(now, change.base):
        return False
    updates = tuple(u for u in change.updates if not _is_done(u, change.base, now))
    try:
        again = _applied(TableChange(now, (), updates)) if updates else now.metadata
    except BerglineError:  # not repeatable
        again = _applied(change)
    return _content(now.metadata) == _content(again)


def _is_done(update: Update, base: LoadedTable, now: LoadedTable) -> bool:
    """Whether a ref was dropped, or moved to its target or beyond."""
    if isinstance(update, RemoveSnapshotRef):
        return update.ref_name in base.metadata.refs and update.ref_name not in now.metadata.refs
    if not isinstance(update, SetSnapshotRef):
        return False
    ref = now.metadata.refs.get(update.ref_name)
    if ref is None or not ref.is_branch:
        return False
    return update.snapshot_id in _history(now, update.ref_name) - _history(base, update.ref_name)


def _history(table: LoadedTable, ref_name: str) -> set[int]:
    ref = table.metadata.refs.get(ref_name)
    return {s.snapshot_id for s in table.metadata.ancestors(ref.snapshot_id)} if ref else set()


def _line(table: LoadedTable) -> list[str]:
    """The metadata files of a table that are known, the current one last."""
    return [*(entry.metadata_file for entry in table.metadata.metadata_log), table.metadata_location]


def _is_replaced(change: TableChange, now: LoadedTable) -> bool:
    return change.base.metadata.table_uuid not in {None, now.metadata.table_uuid}


def _excluding(request: CommitTableRequest[Update], *, rebases: bool) -> tuple[Requirement, ...]:
    """The requirements whose failure proves that a snapshot that is not there can no longer be added."""
    return tuple(r for r in request.requirements if not (rebases and isinstance(r, AssertRefSnapshotId)))


def _happens_once(change: TableChange, request: CommitTableRequest[Update]) -> bool:
    """Whether the change invalidates its own requirements, so that it cannot be applied twice.

    The retention of refs does not count unless the change adds a snapshot: others may set it back.
    """
    tells_by_snapshot = bool(added_snapshots(change))
    lasting = tuple(r for r in request.requirements if tells_by_snapshot or not isinstance(r, AssertRefRetention))
    try:
        check_requirements(_applied(change), lasting, str(change.base.name))
    except ConflictError:
        return True
    except BerglineError:
        pass
    return False


def _applied(change: TableChange) -> TableMetadata:
    base = change.base
    now_ms = time.time_ns() // 1_000_000
    return apply_updates(base.metadata, change.updates, base_location=base.metadata_location, now_ms=now_ms)


def _content(metadata: TableMetadata) -> TableMetadata:
    """A table without what every commit changes, and without the restrictions for its readers."""
    return msgspec.structs.replace(
        metadata, last_updated_ms=0, metadata_log=(), snapshot_log=(), read_restrictions=None
    )


_LAST_ADDED = -1


def creation_updates(metadata: TableMetadata) -> tuple[Update, ...]:
    """The updates that create this table."""
    schemas, specs, orders = metadata.schemas, metadata.partition_specs, metadata.sort_orders
    return (
        *([] if metadata.table_uuid is None else [AssignUuid(metadata.table_uuid)]),
        UpgradeFormatVersion(metadata.format_version),
        *(AddSchema(schema, metadata.last_column_id) for schema in schemas),
        SetCurrentSchema(_number(metadata.current_schema_id, schemas[-1].schema_id)),
        *(AddPartitionSpec(spec) for spec in specs),
        SetDefaultSpec(_number(metadata.default_spec_id, specs[-1].spec_id)),
        *(AddSortOrder(order) for order in orders),
        SetDefaultSortOrder(_number(metadata.default_sort_order_id, orders[-1].order_id)),
        SetLocation(metadata.location),
        *([SetProperties(metadata.properties)] if metadata.properties else []),
        *(AddEncryptionKey(key) for key in metadata.encryption_keys),
        *(AddSnapshot(snapshot) for snapshot in metadata.snapshots),
        *(set_ref(name, ref) for name, ref in metadata.refs.items()),
        *(SetStatistics(file) for file in metadata.statistics),
        *(SetPartitionStatistics(file) for file in metadata.partition_statistics),
    )


def _number(chosen: int, last: int | None) -> int:
    """An id, or -1 for the one added last: a server may assign other ids."""
    return _LAST_ADDED if chosen == last else chosen


class RestTurns:
    """Asks the server for the turn on each table, always in the same order."""

    def __init__(self, session: RestSession) -> None:
        self._session = session

    def take_turn(self, tables: Collection[TableName], holder: str, lease_ms: int) -> bool:
        ordered = sorted(tables)
        for number, table in enumerate(ordered):
            if not self._take(table, TakeTurnRequest(holder, lease_ms)):
                with contextlib.suppress(BerglineError):
                    self.give_back_turn(ordered[:number], holder)
                return False
        return True

    def give_back_turn(self, tables: Collection[TableName], holder: str) -> None:
        for table in tables:
            with _harmless():
                names, about = self._session.table_path(table), _about(table)
                self._session.calls.change(GIVE_BACK_TURN, about, names=names, query={"holder": holder})

    def _take(self, table: TableName, request: TakeTurnRequest) -> bool:
        with _harmless():
            names, about = self._session.table_path(table), _about(table)
            response = self._session.calls.change(TAKE_TURN, about, names=names, body=request)
            answer: TakeTurnResponse = response.content
        return answer.granted


@contextlib.contextmanager
def _harmless() -> Iterator[None]:
    """A turn that was taken although the response was lost ends by itself."""
    try:
        yield
    except ChangeInDoubtError as error:
        raise UnavailableError(str(error)) from error
