"""Pull requests on a catalog in SQLite or PostgreSQL, by its own database.

The transaction that moves the tables also marks the pull request as published, but only if it is still the version that
was reviewed, with the same reviews: so nothing is published with checks or approvals that are no longer valid.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from bergline.arguments import check_no_nul, check_text, shown
from bergline.catalog.attempts import attempts
from bergline.catalog.catalog import Catalog, LoadedTable
from bergline.catalog.identifiers import MAX_NAME_LENGTH, TableName
from bergline.catalog.protection.caller import current_caller, standing_for
from bergline.catalog.protection.ref_protection import all_rules, protecting_rules
from bergline.catalog.protection.ref_rule import RefRule
from bergline.catalog.sql.database import Connection
from bergline.catalog.sql.rules.reviews import (
    RecordedReview,
    ReviewedTable,
    ReviewKind,
    ReviewState,
    SqlReviews,
)
from bergline.catalog.sql.rules.rule_records import SqlRuleRecords
from bergline.catalog.sql.sql_store import SqlPointerStore
from bergline.errors import (
    BerglineError,
    CommitUnknownError,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    TablesRefusedError,
    UnavailableError,
)
from bergline.format.metadata.refs import check_ref_name
from bergline.governance.pull_requests.model import (
    PULL_REQUEST,
    CheckOutcome,
    EntryKind,
    NewPullRequest,
    ProposedChange,
    ProposedTable,
    Publication,
    PublishMethod,
    PullRequestEntry,
    PullRequestOverview,
    PullRequestRecord,
    PullRequestState,
    ReportedCheck,
    Standing,
    TableHead,
    missing_branch,
)
from bergline.governance.pull_requests.proposed_change import load_proposed, propose
from bergline.governance.pull_requests.publishing import (
    HeadReviews,
    LookedAt,
    Publishing,
    changed,
    check_open,
    check_passed,
)
from bergline.governance.pull_requests.store import Act, SqlPullRequests
from bergline.governance.reviews.model import CheckState
from bergline.table.references.publish import PublishRequest
from bergline.table.table_selection import find_tables, named_tables

_LONGEST_TEXT = 64 * 1024

PublishTables = Callable[[PublishRequest, Mapping[str | TableName, int]], object]
"""Publishes a branch of several tables, each at a given snapshot, in one commit."""


class DirectPullRequests:
    """PullRequestCalls on a database."""

    def __init__(
        self, catalog: Catalog, store: SqlPointerStore, publish: PublishTables, clock_ms: Callable[[], int]
    ) -> None:
        self._catalog = catalog
        self._publish = publish
        self._now_ms = clock_ms
        self._store = store
        self._database = store.database
        self._requests = SqlPullRequests(store.database, store.catalog_name)
        self._reviews = SqlReviews(store.database, store.catalog_name)

    def open(self, new: NewPullRequest) -> PullRequestRecord:
        """Open one; its tables must have the branch and the target now."""
        check_ref_name(new.branch)
        check_ref_name(new.target)
        if new.branch == new.target:
            raise InvalidInputError(f"expected two branches, found `{new.branch}` twice")
        now, tables = self._now_ms(), self._tables(new)
        record = PullRequestRecord(
            number=0,
            title=_checked(new.title, "the title of a pull request", MAX_NAME_LENGTH),
            author=current_caller().name,
            branch=new.branch,
            target=new.target,
            tables=tables,
            created_ms=now,
            updated_ms=now,
            description=_checked(new.description, "its description", _LONGEST_TEXT, least=0),
        )
        for table in tables:
            load_proposed(self._catalog, record, table)
        return self._requests.add(record)

    def page(self, state: PullRequestState | None, before: int | None, most: int) -> Sequence[PullRequestRecord]:
        """Some of them, newest first."""
        return self._requests.page(state, before, most)

    def find(self, number: int) -> PullRequestRecord:
        """The record of one."""
        return self._requests.find(number)

    def overview(self, number: int) -> PullRequestOverview:
        """The record of one, with what publishing would do now; if it is published, only the record."""
        record = self._requests.find(number)
        history = self._requests.history(number)
        if record.state is PullRequestState.PUBLISHED:
            return PullRequestOverview(record, (), history)
        now = self._now_ms()
        tables = tuple(self._proposed_change(record, table, now) for table in record.tables)
        approved = [set(table.approved_by) for table in tables]
        approved_by = set.intersection(*approved)
        once = {entry.principal for entry in history if entry.what is EntryKind.APPROVED}
        gone = {
            entry.principal: entry.what for entry in history if entry.what in {EntryKind.APPROVED, EntryKind.WITHDREW}
        }
        stale = {name for name in once - approved_by if gone[name] is EntryKind.APPROVED}
        return PullRequestOverview(record, tables, history, tuple(sorted(approved_by)), tuple(sorted(stale)))

    def edit(self, number: int, title: str | None, description: str | None) -> PullRequestRecord:
        """Change its title or description."""
        changes: dict[str, str] = {}
        if title is not None:
            changes["title"] = _checked(title, "the title of a pull request", MAX_NAME_LENGTH)
        if description is not None:
            changes["description"] = _checked(description, "its description", _LONGEST_TEXT, least=0)

        if not changes:
            raise InvalidInputError("expected a new title or description, found neither")

        def act(_connection: Connection, record: PullRequestRecord) -> PullRequestRecord:
            return msgspec.structs.replace(record, **changes)

        return self._change(number, EntryKind.EDITED, act, text=title)

    def comment(self, number: int, text: str) -> PullRequestRecord:
        """Add a comment."""
        said = _checked(text, "a comment", _LONGEST_TEXT)
        return self._change(number, EntryKind.COMMENTED, lambda _, record: record, text=said)

    def approve(self, number: int, heads: tuple[TableHead, ...]) -> PullRequestRecord:
        """Approve heads; the author cannot."""
        record = self._requests.find(number)
        check_open(record)
        who = current_caller().name
        if who == record.author:
            raise RefusedError(
                f"pull request {number} is by `{who}`, who cannot approve it", hints=["have somebody else review it"]
            )
        said = _Said(record.target, ReviewKind.APPROVAL, ReviewState.APPROVED, who)
        entry = PullRequestEntry(self._now_ms(), who, EntryKind.APPROVED, None, heads)
        return self._review_there(record, entry, heads, said, lambda found: _check_seen(record, heads, found))

    def withdraw(self, number: int) -> PullRequestRecord:
        """Withdraw the caller's approvals of its heads, including heads that have moved since."""
        who = current_caller().name
        record = self._requests.find(number)
        approved = {
            head
            for entry in self._requests.history(number)
            if entry.what is EntryKind.APPROVED and entry.principal == who
            for head in entry.heads
        }
        if not approved:
            raise NotFoundError(f"pull request {number} has no approval of `{who}`", kind="approval", name=who)
        said = _Said(record.target, ReviewKind.APPROVAL, ReviewState.WITHDRAWN, who)
        entry = PullRequestEntry(self._now_ms(), who, EntryKind.WITHDREW)
        return self._review(number, entry, _in_order(record, approved), said)

    def report_check(self, number: int, report: CheckOutcome) -> PullRequestRecord:
        """Record the result of a check on heads, whether or not they have moved since."""
        name = _checked(report.name, "the name of a check", MAX_NAME_LENGTH)
        detail = None if report.detail is None else _checked(report.detail, "what a check says", _LONGEST_TEXT, least=0)
        record = self._requests.find(number)
        check_open(record)
        heads = self._heads(record) if report.heads is None else report.heads
        for head in heads:
            _check_of(record, head.name)
        if not heads:
            raise InvalidInputError(f"expected the head of a table for check `{name}`, found none")
        said = _Said(record.target, ReviewKind.CHECK, ReviewState(report.state.value), name, detail)
        text, who = f"{name}: {report.state}", current_caller().name
        entry = PullRequestEntry(self._now_ms(), who, EntryKind.CHECKED, text, heads)
        return self._review_there(record, entry, heads, said, lambda found: _check_there(heads, found))

    def publish(self, number: int, publication: Publication) -> PullRequestRecord:
        """Publish in one commit; an unknown outcome is looked up in the pull request."""
        record = self._requests.find(number)
        check_open(record)
        if publication.version not in {None, record.version}:
            raise changed(record, f"expected version {publication.version}, found {record.version}")
        _check_seen(record, publication.heads, self._load(record))
        reviews = self._head_reviews(record, publication.heads)
        check_passed(record, reviews)
        seen = LookedAt(record, reviews, publication)
        publishing = Publishing(self._requests, self._reviews, seen)
        try:
            self._commit(record, publication, publishing)
        except CommitUnknownError:
            now = self._requests.find(number)
            if now.state is PullRequestState.PUBLISHED and now.published == publication.heads:
                return now
            raise
        except RefusedError as error:
            if publishing.outdated is not None:
                raise publishing.outdated from None
            if isinstance(error, TablesRefusedError):
                raise _said_by_tables(error) from error
            raise
        now = self._requests.find(number)
        # the target had everything already, and the branch stays: no table was changed
        if now.state is PullRequestState.OPEN:
            return self._publish_nothing(publishing)
        return now

    def close(self, number: int) -> PullRequestRecord:
        """Close it, even if its branch or tables are gone."""

        def act(_connection: Connection, record: PullRequestRecord) -> PullRequestRecord:
            check_open(record)
            return msgspec.structs.replace(record, state=PullRequestState.CLOSED)

        return self._change(number, EntryKind.CLOSED, act)

    def reopen(self, number: int) -> PullRequestRecord:
        """Reopen a closed one."""

        def act(_connection: Connection, record: PullRequestRecord) -> PullRequestRecord:
            if record.state is not PullRequestState.CLOSED:
                raise ConflictError(f"pull request {record.number} is {record.state}: only a closed one is reopened")
            return msgspec.structs.replace(record, state=PullRequestState.OPEN)

        return self._change(number, EntryKind.REOPENED, act)

    def _commit(self, record: PullRequestRecord, publication: Publication, publishing: Publishing) -> None:
        seen = {head.name: head.snapshot_id for head in publication.heads}
        heads: dict[str | TableName, int] = {table.name: seen[table.name] for table in record.tables}
        method = publication.method

        def note(connection: Connection, _changed: object) -> None:
            publishing.note(connection, self._now_ms())

        with standing_for(seen, record.author), self._database.before_commit(note):
            self._publish(
                PublishRequest(
                    record.branch,
                    record.target,
                    merge=method is not PublishMethod.FAST_FORWARD,
                    squash=method is PublishMethod.SQUASH,
                    keep_branch=publication.keep_branch,
                ),
                heads,
            )

    def _publish_nothing(self, publishing: Publishing) -> PullRequestRecord:
        try:
            with self._database.changing() as connection:
                done = publishing.note(connection, self._now_ms())
                self._database.run_hooks(connection)
                return done
        except RefusedError as error:
            raise publishing.outdated or error from None

    def _tables(self, new: NewPullRequest) -> tuple[ProposedTable, ...]:
        known: set[str] = set()
        names = (
            tuple(find_tables(self._catalog, new.branch, None, known))
            if new.tables is None
            else named_tables(new.tables)
        )
        if not names:
            raise missing_branch(new.branch, known)
        return tuple(self._proposed(name) for name in sorted(names))

    def _proposed(self, name: TableName) -> ProposedTable:
        uuid = self._catalog.load_table(name).metadata.table_uuid
        if uuid is None:
            raise InvalidInputError(
                f"expected a table with a uuid, found `{name}`, which has none", hints=["any commit to it gives it one"]
            )
        return ProposedTable(name, uuid)

    def _heads(self, record: PullRequestRecord) -> tuple[TableHead, ...]:
        found = []
        for table in record.tables:
            metadata = load_proposed(self._catalog, record, table).metadata
            found.append(TableHead(table.name, metadata.ref(record.branch).snapshot_id))
        return tuple(found)

    def _load(self, record: PullRequestRecord) -> list[LoadedTable]:
        return [load_proposed(self._catalog, record, table) for table in record.tables]

    def _head_reviews(self, record: PullRequestRecord, heads: tuple[TableHead, ...]) -> HeadReviews:
        seen = {head.name: head.snapshot_id for head in heads}
        return {
            table.name: (reviewed, seen[table.name], self._reviews.of(reviewed, seen[table.name], record.target))
            for table in record.tables
            for reviewed in (ReviewedTable(table.name, table.uuid),)
        }

    def _proposed_change(self, record: PullRequestRecord, table: ProposedTable, now_ms: int) -> ProposedChange:
        """What publishing would do to a table, with its reviews and errors; only UnavailableError is raised."""
        try:
            loaded = load_proposed(self._catalog, record, table)
        except UnavailableError:
            raise
        except BerglineError as error:
            return ProposedChange(table.name, Standing.GONE, problem=str(error))
        return self._reviewed(record, loaded, table, propose(self._catalog, record, loaded, now_ms))

    def _reviewed(
        self, record: PullRequestRecord, loaded: LoadedTable, table: ProposedTable, change: ProposedChange
    ) -> ProposedChange:
        if change.head is None:
            return change
        found = self._reviews.of(ReviewedTable(table.name, table.uuid), change.head, record.target)
        checks = tuple(
            ReportedCheck(r.name, CheckState(r.state.value), r.principal, r.at_ms, r.detail)
            for r in found
            if r.kind is ReviewKind.CHECK
        )
        approved = tuple(dict.fromkeys(r.name for r in found if r.state is ReviewState.APPROVED))
        uncounted = self._uncounted(record, loaded, change) if approved else {}
        uncounted = {name: uncounted[name] for name in approved if name in uncounted}
        return msgspec.structs.replace(change, checks=checks, approved_by=approved, uncounted=uncounted)

    def _uncounted(self, record: PullRequestRecord, loaded: LoadedTable, change: ProposedChange) -> dict[str, str]:
        """Whose approvals a rule would not count, decided as in `catalog.protection.decision`."""
        base = loaded.metadata
        rules = all_rules(base.properties, self._catalog.rule_levels(loaded.name))
        if not any(
            isinstance(of.rule, RefRule) and of.rule.approvals
            for of in protecting_rules(rules, record.target, is_branch=True)
        ):
            return {}
        heads = (change.head, change.target_head)
        gained, had = ({s.snapshot_id for s in base.ancestors(head)} if head else set() for head in heads)
        wrote = SqlRuleRecords(self._database, self._store.catalog_name).authors(base.table_uuid or "", gained - had)
        found = dict.fromkeys(wrote, "who wrote to the branch cannot approve it")
        found[record.author] = "who opened it cannot approve it"
        return found | {current_caller().name: "who publishes it cannot approve it"}

    def _record(self, connection: Connection, seen: Sequence[tuple[ReviewedTable, int]], said: "_Said") -> None:
        who, now = current_caller().name, self._now_ms()
        for table, snapshot_id in seen:
            review = RecordedReview(snapshot_id, said.kind, said.name, said.state, who, now, said.detail, said.target)
            self._reviews.record(table, review, connection)

    def _review_there(
        self,
        record: PullRequestRecord,
        entry: PullRequestEntry,
        heads: tuple[TableHead, ...],
        said: "_Said",
        check: Callable[[Sequence[LoadedTable]], None],
    ) -> PullRequestRecord:
        """Record a review of heads after `check` has passed; repeat if they move before it is recorded."""
        tries = attempts(f"the tables of pull request {record.number} kept changing during the review")
        while True:
            next(tries)
            tables = self._load(record)
            check(tables)
            try:
                return self._review(record.number, entry, _in_order(record, heads), said, tables)
            except _MovedError:
                continue

    def _hold(self, connection: Connection, tables: Sequence[LoadedTable]) -> None:
        # the pointers before their reviews, and in the same order as commits, to avoid deadlocks
        for table in sorted(tables, key=lambda t: t.name):
            if not self._store.holds(connection, table.name, table.metadata_location):
                raise _MovedError

    def _review(
        self,
        number: int,
        entry: PullRequestEntry,
        seen: Sequence[tuple[ReviewedTable, int]],
        said: "_Said",
        tables: Sequence[LoadedTable] = (),
    ) -> PullRequestRecord:
        """Record a review of heads; ConflictError, and nothing is recorded, unless the pull request is open."""

        def first(connection: Connection) -> None:
            self._hold(connection, tables)
            self._record(connection, seen, said)

        def act(_connection: Connection, record: PullRequestRecord) -> PullRequestRecord:
            check_open(record)
            return record

        return self._requests.change(number, entry, act, first)

    def _change(self, number: int, what: EntryKind, act: Act, *, text: str | None = None) -> PullRequestRecord:
        entry = PullRequestEntry(self._now_ms(), current_caller().name, what, text)
        return self._requests.change(number, entry, act)


class _Said(msgspec.Struct, frozen=True):
    """A review of heads, for a target."""

    target: str
    kind: ReviewKind
    state: ReviewState
    name: str
    detail: str | None = None


def _checked(text: str, what: str, most: int, least: int = 1) -> str:
    check_no_nul(check_text(text, f"text for {what}"), what)
    if not least <= len(text.strip()) or len(text) > most:
        raise InvalidInputError(f"expected {least} to {most} characters for {what}, found {shown(text)}")
    return text


def _check_of(record: PullRequestRecord, name: TableName) -> None:
    if all(table.name != name for table in record.tables):
        known = [str(table.name) for table in record.tables]
        raise NotFoundError(
            f"pull request {record.number} has no table `{name}`", kind=PULL_REQUEST, name=str(name), known=known
        )


class _MovedError(Exception):
    """A table has changed since it was reviewed."""


def _check_seen(record: PullRequestRecord, heads: tuple[TableHead, ...], found: Sequence[LoadedTable]) -> None:
    """The heads that the caller saw must be the current ones of all tables."""
    seen = {head.name: head.snapshot_id for head in heads}
    for name in seen:
        _check_of(record, name)
    for table in found:
        head = table.metadata.ref(record.branch).snapshot_id
        if table.name not in seen:
            raise InvalidInputError(f"expected a head of each table, found none of `{table.name}`")
        if seen[table.name] != head:
            raise ConflictError(
                f"the head of `{record.branch}` of table `{table.name}` moved: "
                f"expected snapshot {seen[table.name]}, found {head}",
                hints=["look at the pull request again"],
            )


def _check_there(heads: tuple[TableHead, ...], found: Sequence[LoadedTable]) -> None:
    """NotFoundError for a snapshot that its table does not have: nobody can have checked it."""
    tables = {table.name: table.metadata for table in found}
    for head in heads:
        tables[head.name].snapshot(head.snapshot_id)


def _in_order(record: PullRequestRecord, heads: Iterable[TableHead]) -> list[tuple[ReviewedTable, int]]:
    """Heads with their tables, in the order in which everybody locks the tables."""
    snapshots: dict[TableName, list[int]] = {}
    for head in heads:
        snapshots.setdefault(head.name, []).append(head.snapshot_id)
    return [
        (ReviewedTable(t.name, t.uuid), snapshot_id)
        for t in record.tables
        for snapshot_id in sorted(snapshots.get(t.name, ()))
    ]


def _said_by_tables(error: TablesRefusedError) -> TablesRefusedError | ConflictError:
    """A conflict if any table has one, because looking again may help then."""
    if any(isinstance(reason, ConflictError) for reason in error.reasons.values()):
        return ConflictError(str(error), hints=error.hints)
    return error
