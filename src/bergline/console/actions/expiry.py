"""Expire snapshots, after showing the plan: the confirmed plan is done, or nothing."""

import datetime as dt

import msgspec

from bergline.arguments import counted
from bergline.catalog.identifiers import TableName
from bergline.console.actions.equivalents import call, command, python_call
from bergline.console.actions.form import Answers, Field
from bergline.console.actions.review import ConsoleAction, Equivalents, Review, Section, changed_since, fingerprint
from bergline.errors import ConflictError
from bergline.format.metadata.snapshot_log import readable_ms
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.reports.units import render_size
from bergline.scan.manifest_cache import FreshReads
from bergline.table.commits.operation import Change, CommitStamp, Landed
from bergline.table.expiry.expire import Cleanup, Expire, PlannedExpiry, work_out_expiry
from bergline.table.expiry.plan import total
from bergline.table.expiry.retention import ExpiryRequest
from bergline.table.table import Table

_SHOWN = 200
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class ConfirmedExpiry:
    """Expiry as of the moment of its review; ConflictError if more or other things would go by now."""

    needs_validation = False

    def __init__(self, expire: Expire, name: TableName, moment_ms: int, expected: str) -> None:
        self._expire = expire
        self._name = name
        self._moment_ms = moment_ms
        self._expected = expected

    def attempt(self, base: TableMetadata, stamp: CommitStamp) -> Change:
        """The change that was reviewed."""
        change = self._expire.attempt(base, msgspec.structs.replace(stamp, now_ms=self._moment_ms))
        planned = self._expire.planned
        if planned is None or _fingerprint(self._name, planned) != self._expected:
            raise changed_since()
        return change

    def settled(self, landed: Landed | None) -> None:
        """Delete the files, if it landed."""
        self._expire.settled(landed)


def _review_expire(table: Table, answers: Answers, now_ms: int) -> Review:
    age_ms, retain_last = answers.age_ms("older_than"), answers.number("retain_last")
    older_than_ms = None if age_ms is None else max(now_ms - age_ms, 0)
    request = ExpiryRequest(older_than_ms, retain_last, levels=table.refs.scope_rules())
    planned = work_out_expiry(table.io, table.metadata, request, Cleanup(), now_ms, fresh=FreshReads())
    expected = _fingerprint(table.name, planned)
    deleted = total(planned.files)

    def do() -> str:
        expire = Expire(table.io, request, Cleanup(), lambda: _newest(table))
        table.commit(ConfirmedExpiry(expire, table.name, now_ms, expected))
        return str(expire.result)

    removed = planned.decision.removed_snapshots
    moment = None if older_than_ms is None else _EPOCH + dt.timedelta(milliseconds=older_than_ms)
    return Review(
        (
            f"removes {counted(len(removed), 'snapshot')} and {counted(len(planned.decision.removed_refs), 'ref')}",
            f"deletes for good what only they needed: {counted(deleted.files, 'file')} of {render_size(deleted.bytes)}",
        ),
        Equivalents(
            python_call(table.name, "expire", older_than=moment, retain_last=retain_last),
            call("expire_snapshots", table.name, older_than=moment, retain_last=retain_last),
            command(
                "expire",
                str(table.name),
                older_than=None if moment is None else moment.isoformat(timespec="milliseconds"),
                retain_last=retain_last,
                yes=True,
            ),
        ),
        expected,
        do,
        tuple(_sections(planned)),
        nothing_to_do=not planned.updates,
        moment_ms=now_ms,
    )


def _newest(table: Table) -> TableMetadata:
    """The table as it is now; ConflictError if it was dropped and created again."""
    uuid = table.metadata.table_uuid
    now = table.refresh().metadata
    if now.table_uuid != uuid:
        raise ConflictError(f"table `{table.name}` was dropped and created again meanwhile")
    return now


def _fingerprint(name: TableName, planned: PlannedExpiry) -> str:
    decision = planned.decision
    files = sorted(file.location for file in planned.files)
    return fingerprint(str(name), sorted(decision.removed_snapshots), sorted(decision.removed_refs), files)


def _sections(planned: PlannedExpiry) -> list[Section]:
    decision = planned.decision
    refs: list[tuple[str, ...]] = [
        (f"{r.ref.snapshot_ref_type} {r.name}", str(r.reason)) for r in decision.refs if not r.kept
    ]
    gone = [d for d in decision.snapshots if not d.kept]
    snapshots: list[tuple[str, ...]] = [
        (str(d.snapshot.snapshot_id), readable_ms(d.snapshot.timestamp_ms), "; ".join(map(str, d.reasons)))
        for d in reversed(gone)
    ]
    files: list[tuple[str, ...]] = [
        (f.location, str(f.kind), "" if f.size is None else render_size(f.size)) for f in planned.files
    ]
    every: list[tuple[str, tuple[str, ...], list[tuple[str, ...]]]] = [
        ("Branches and tags that are removed", ("ref", "why"), refs),
        ("Snapshots that are removed", ("snapshot", "made", "why"), snapshots),
        ("Files that are deleted", ("file", "kind", "size"), files),
    ]
    return [
        Section(title, columns, tuple(rows[:_SHOWN]), max(len(rows) - _SHOWN, 0))
        for title, columns, rows in every
        if rows
    ]


EXPIRE = ConsoleAction(
    "expire",
    "Expire snapshots",
    (
        Field(
            "older_than",
            "Older than",
            "age",
            "Such as 7 d or 12 h; snapshots that a branch or tag protects stay. Empty: as the table says.",
            required=False,
        ),
        Field("retain_last", "Snapshots to keep on each branch", "number", "Empty: as the table says.", required=False),
    ),
    _review_expire,
    "Expire as planned",
    destroys=True,
    only_on_main=True,
)
