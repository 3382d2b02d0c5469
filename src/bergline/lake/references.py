"""Branches and tags of several tables as one: all of them move in one commit, or none does."""

from collections.abc import Mapping

import msgspec

from bergline.arguments import check_whole, shown
from bergline.catalog.identifiers import Namespace, TableName
from bergline.errors import InvalidInputError, NotFoundError
from bergline.format.metadata.refs import MAIN, SnapshotRefType, check_ref_name
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.lake.handle import LakeHandle
from bergline.lake.ref_report import RefReport, WatchedRef
from bergline.table.commits.commit import TableWork, commit
from bergline.table.commits.operation import Change, MetadataOperation, Operation
from bergline.table.references.new_ref import NewRef
from bergline.table.references.publish import Publish, PublishRequest
from bergline.table.references.published_runs import PublishedRun
from bergline.table.references.ref_changes import Retention, drop_ref
from bergline.table.scans.version import SnapshotChoice
from bergline.table.table_selection import TableNames, find_tables, named_tables, selected_tables, tables_with_ref

SnapshotChoices = Mapping[str | TableName, SnapshotChoice | None]


class LakeRefs:
    """Every method that changes is one commit to all its tables, retried when others come first.

    If one table cannot, none is changed, and a TablesRefusedError has the reason of every table that cannot.
    """

    def __init__(self, lake: LakeHandle) -> None:
        self._catalog = lake.catalog
        self._timing = lake.timing

    def branch(
        self,
        name: str,
        tables: TableNames | SnapshotChoices | None = None,
        *,
        namespace: str | Namespace | None = None,
        at: SnapshotChoice | None = None,
        min_snapshots_to_keep: int | None = None,
        max_snapshot_age_ms: int | None = None,
        max_ref_age_ms: int | None = None,
        if_not_exists: bool = False,
        or_replace: bool = False,
    ) -> RefReport:
        """A branch of every table that is named, or of all in a namespace and below it.

        It begins where `at` says, or for each table what a mapping says, by default at the head of its `main`.
        """
        retention = Retention(min_snapshots_to_keep, max_snapshot_age_ms, max_ref_age_ms)
        request = NewRef(name, SnapshotRefType.BRANCH, retention, if_not_exists, or_replace)
        return self._create(request, self._snapshots(name, tables, namespace, at))

    def tag(
        self,
        name: str,
        tables: TableNames | SnapshotChoices | None = None,
        *,
        namespace: str | Namespace | None = None,
        at: SnapshotChoice | None = None,
        max_ref_age_ms: int | None = None,
        if_not_exists: bool = False,
        or_replace: bool = False,
    ) -> RefReport:
        """A tag of every table that is named, or of all in a namespace and below it.

        It names the snapshot that `at` says, or a mapping for each table, by default the head of its `main`.
        """
        retention = Retention(max_ref_age_ms=max_ref_age_ms)
        request = NewRef(name, SnapshotRefType.TAG, retention, if_not_exists, or_replace)
        return self._create(request, self._snapshots(name, tables, namespace, at))

    def publish(
        self,
        branch: str,
        *,
        into: str = MAIN,
        tables: TableNames | Mapping[str | TableName, int] | None = None,
        namespace: str | Namespace | None = None,
        merge: bool = False,
        squash: bool = False,
        keep_branch: bool = False,
        tag: str | None = None,
        run: PublishedRun | None = None,
    ) -> RefReport:
        """Bring what a branch has into another, in the named tables or in all that have it, and drop the branch.

        Where the other has moved on as well that is refused, unless `merge`: then the branch's snapshots are replayed
        on top of it. `squash` merges too where history has expired. With `keep_branch` the branch stays. A `tag` is
        created in the same commit. A mapping of tables says at which snapshot the branch of each must be. The `run` of
        a pipeline is kept in a property of each table whose `into` moves.
        """
        check_ref_name(branch)
        if tag is not None:
            check_ref_name(tag)
        request = PublishRequest(branch, into, merge or squash, squash, keep_branch, tag, run=run)
        heads = _heads(tables) if isinstance(tables, Mapping) else {}
        names = self._having(branch, list(heads) if heads else tables, namespace)
        operations = {
            table: Publish(self._catalog.io, msgspec.structs.replace(request, head=heads.get(table))) for table in names
        }
        what = f"`{branch}` into `{into}`"
        return self._commit(f"publish {what}", f"published {what}", into, operations)

    def drop_ref(
        self,
        name: str,
        *,
        tables: TableNames | None = None,
        namespace: str | Namespace | None = None,
        if_exists: bool = False,
    ) -> RefReport:
        """Forget a branch or tag in the named tables, or in all that have it; its snapshots stay until expiry."""
        check_ref_name(name)
        operations = {
            table: MetadataOperation(
                lambda base: _drop(base, name, if_exists=if_exists), overwrites=lambda base: base.refs.get(name)
            )
            for table in self._having(name, tables, namespace, if_exists=if_exists)
        }
        return self._commit(f"drop `{name}`", f"dropped `{name}`", name, operations)

    def tables_with_ref(self, name: str, *, namespace: str | Namespace | None = None) -> list[str]:
        """The tables that have a branch or tag of this name, in the lake, or in a namespace and below it."""
        check_ref_name(name)
        return [str(table) for table in find_tables(self._catalog, name, namespace)]

    def _snapshots(
        self,
        ref: str,
        tables: TableNames | SnapshotChoices | None,
        namespace: str | Namespace | None,
        at: SnapshotChoice | None,
    ) -> dict[TableName, SnapshotChoice | None]:
        check_ref_name(ref)
        names = selected_tables(self._catalog, tables, namespace)
        if not isinstance(tables, Mapping):
            return dict.fromkeys(names, at)
        if at is not None:
            raise InvalidInputError(f"expected no `at` beside a snapshot for each table, found {shown(at)}")
        return dict(zip(names, tables.values(), strict=True))

    def _having(
        self, ref: str, tables: TableNames | None, namespace: str | Namespace | None, *, if_exists: bool = False
    ) -> tuple[TableName, ...]:
        known_refs: set[str] = set()
        names = tables_with_ref(self._catalog, ref, tables, namespace, known_refs)
        if not names and not if_exists:
            raise NotFoundError(f"no table with a branch or tag `{ref}`", kind="ref", name=ref, known=known_refs)
        return names

    def _create(self, request: NewRef, snapshots: Mapping[TableName, SnapshotChoice | None]) -> RefReport:
        what = f"{request.kind} `{request.name}`"
        operations = {table: request.operation(self._catalog.io, at) for table, at in snapshots.items()}
        return self._commit(f"create {what}", f"created {what}", request.name, operations)

    def _commit(self, to_do: str, done: str, ref: str, operations: Mapping[TableName, Operation]) -> RefReport:
        watched = {name: WatchedRef(operation, ref) for name, operation in operations.items()}
        work = [TableWork(name, None, None, one) for name, one in watched.items()]
        commit(self._catalog, work, self._timing, refusal=f"cannot {to_do}")
        return RefReport(done, ref, tuple(one.outcome(str(name)) for name, one in watched.items()))


def _heads(tables: Mapping[str | TableName, int]) -> dict[TableName, int]:
    for table, head in tables.items():
        check_whole(head, f"the snapshot of `{table}`")
    return dict(zip(named_tables(tables), tables.values(), strict=True))


def _drop(base: TableMetadata, name: str, *, if_exists: bool) -> Change:
    if if_exists and name not in base.refs:
        return Change()
    return drop_ref(base, name, base.ref(name).snapshot_ref_type)
