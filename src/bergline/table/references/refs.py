"""`table.refs`: the user's interface to branches and tags."""

from collections.abc import Callable, Iterable, Iterator

from bergline.arguments import check_list, shown
from bergline.catalog.protection.ref_protection import ProtectingRule, all_rules, protecting_rules
from bergline.catalog.protection.ref_rule import RefRule, make_rule
from bergline.catalog.protection.rule_scope import RuleLevel
from bergline.catalog.protection.table_rules import parse_rules
from bergline.errors import InvalidInputError
from bergline.format.metadata.refs import MAIN, SnapshotRef, SnapshotRefType
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.fileio import FileIO
from bergline.notebook import drawn
from bergline.table.commits.operation import Change, MetadataOperation, Operation
from bergline.table.references.cherry_pick import CherryPick
from bergline.table.references.diff import RefDiff, diff_refs
from bergline.table.references.dropped_refs import find_dropped
from bergline.table.references.merge import Merge, MergeResult
from bergline.table.references.merge_plan import MergeRequest
from bergline.table.references.new_ref import NewRef
from bergline.table.references.ref_changes import (
    Retention,
    check_cleared,
    create_ref,
    drop_ref,
    fast_forward,
    head_of,
    left_behind,
    move_branch,
    rename_ref,
    replace_ref,
    rollback_target,
    set_retention,
)
from bergline.table.references.rule_changes import remove_rule, set_rule
from bergline.table.references.staged import find_staged
from bergline.table.scans.version import SnapshotChoice, snapshot_at

_BRANCH, _TAG = SnapshotRefType.BRANCH, SnapshotRefType.TAG


class Refs:
    """Every method is one commit, retried when others come first; reading shows the table as last loaded.

    `at` and `to` are a snapshot id, a ref, or a time: what `main` was then.
    """

    def __init__(
        self,
        metadata: Callable[[], TableMetadata],
        run: Callable[[Operation], TableMetadata],
        io: FileIO,
        levels: Callable[[], tuple[RuleLevel, ...]] = lambda: (),
    ) -> None:
        self._metadata = metadata
        self._run = run
        self._io = io
        self._levels = levels

    def __iter__(self) -> Iterator[str]:
        return iter(self._metadata().refs)

    def __len__(self) -> int:
        return len(self._metadata().refs)

    def __getitem__(self, name: str) -> SnapshotRef:
        return self._metadata().ref(name)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._metadata().refs

    def __repr__(self) -> str:
        return f"Refs({', '.join(f'{r.snapshot_ref_type} {n!r}' for n, r in self._metadata().refs.items())})"

    def _repr_html_(self) -> str:
        return drawn("refs_html", self._metadata())

    @property
    def branches(self) -> dict[str, SnapshotRef]:
        """The branches by name, each with its snapshot and retention."""
        return self._of_kind(_BRANCH)

    @property
    def tags(self) -> dict[str, SnapshotRef]:
        """The tags by name, each with its snapshot and retention."""
        return self._of_kind(_TAG)

    def create_branch(
        self,
        name: str,
        *,
        at: SnapshotChoice | None = None,
        min_snapshots_to_keep: int | None = None,
        max_snapshot_age_ms: int | None = None,
        max_ref_age_ms: int | None = None,
        if_not_exists: bool = False,
        or_replace: bool = False,
    ) -> None:
        """Create a branch, by default at the head of `main`; on an empty table with an empty snapshot."""
        retention = Retention(min_snapshots_to_keep, max_snapshot_age_ms, max_ref_age_ms)
        self._run(NewRef(name, _BRANCH, retention, if_not_exists, or_replace).operation(self._io, at))

    def create_tag(
        self,
        name: str,
        *,
        at: SnapshotChoice | None = None,
        max_ref_age_ms: int | None = None,
        if_not_exists: bool = False,
        or_replace: bool = False,
    ) -> None:
        """Create a tag, by default at the head of `main`."""
        retention = Retention(max_ref_age_ms=max_ref_age_ms)
        self._run(NewRef(name, _TAG, retention, if_not_exists, or_replace).operation(self._io, at))

    def replace_branch(
        self, name: str, *, at: SnapshotChoice | None = None, retention: Retention | None = None
    ) -> None:
        """Move a branch to any snapshot; retention that is not given stays."""
        self._replace(name, _BRANCH, at, retention)

    def replace_tag(self, name: str, *, at: SnapshotChoice | None = None, retention: Retention | None = None) -> None:
        """Move a tag: the only way a tag ever moves."""
        self._replace(name, _TAG, at, retention)

    def rename_branch(self, name: str, *, to: str) -> None:
        """Rename a branch; to `main` only if the table has no `main`."""
        self._change(rename_ref, name, _BRANCH, to)

    def rename_tag(self, name: str, *, to: str) -> None:
        """Rename a tag."""
        self._change(rename_ref, name, _TAG, to)

    def drop_branch(self, name: str, *, if_exists: bool = False) -> None:
        """Drop a branch; `main` is refused."""
        self._drop(name, _BRANCH, if_exists=if_exists)

    def drop_tag(self, name: str, *, if_exists: bool = False) -> None:
        """Drop a tag."""
        self._drop(name, _TAG, if_exists=if_exists)

    def restore(self, name: str) -> None:
        """Restore a dropped branch or tag from the table's earlier metadata, while its snapshot exists."""

        def restored(base: TableMetadata) -> Change:
            ref = find_dropped(self._io, base, name)
            retention = Retention(ref.min_snapshots_to_keep, ref.max_snapshot_age_ms, ref.max_ref_age_ms)
            return create_ref(base, name, ref.snapshot_ref_type, ref.snapshot_id, retention, or_replace=False)

        self._run(MetadataOperation(restored))

    def set_retention(
        self,
        name: str,
        *,
        min_snapshots_to_keep: int | None = None,
        max_snapshot_age_ms: int | None = None,
        max_ref_age_ms: int | None = None,
        clear: Iterable[str] = (),
    ) -> None:
        """Change how long a ref and its history are kept; for settings named in `clear`, the table's apply again."""
        retention = Retention(min_snapshots_to_keep, max_snapshot_age_ms, max_ref_age_ms)
        cleared = check_list(clear, "setting")
        check_cleared(retention, cleared)
        self._change(set_retention, name, retention, cleared)

    def fast_forward(self, branch: str, *, to: str) -> MergeResult:
        """Move a branch forward to a ref that descends from it; one that does not exist is created there."""
        return self._move(branch, lambda base: fast_forward(base, branch, to))

    def rollback(self, branch: str = MAIN, *, to: SnapshotChoice) -> MergeResult:
        """Move a branch back to a snapshot of its history, by id, by ref, or the last one before a time.

        ConflictError if others commit to the branch meanwhile: commits that the caller has not seen are never undone.
        """
        return self._leave(branch, lambda base: rollback_target(base, branch, to))

    def set_current(self, branch: str = MAIN, *, to: SnapshotChoice) -> MergeResult:
        """Move a branch to any snapshot: by id, by ref, or what `main` was at a time."""
        return self._leave(branch, lambda base: snapshot_at(base, to))

    def cherry_pick(self, snapshot: SnapshotChoice, *, onto: str = MAIN) -> MergeResult:
        """Bring one snapshot, by its id or a ref, to a branch.

        The branch moves to a snapshot whose parent is its head. Else an append is replayed on top of it, and so are
        replaced partitions to which nobody has added since; RefusedError for all others, and for changes it already
        has.
        """
        return self._pick(lambda base: base.snapshot(snapshot_at(base, snapshot)), onto)

    def publish(self, wap_id: str, *, into: str = MAIN) -> MergeResult:
        """Cherry-pick the snapshot that was staged under a WAP id; refused the second time."""
        return self._pick(lambda base: find_staged(base, wap_id, into), into)

    def staged(self, wap_id: str) -> Snapshot:
        """The snapshot that was staged under a WAP id, to be read before it is published."""
        return find_staged(self._metadata(), wap_id)

    def merge(self, branch: str, *, into: str, squash: bool = False) -> MergeResult:
        """Merge a branch into another: move it forward, or replay each snapshot on top of it.

        ConflictError if both changed the same files. If history has expired, `squash` replays the difference of the two
        ends as one snapshot.
        """
        return self._merge(MergeRequest(branch, into, "onto", squash))

    def rebase(self, branch: str, *, onto: str, squash: bool = False) -> MergeResult:
        """Move a branch on top of another ref: its own snapshots are replayed there."""
        return self._merge(MergeRequest(branch, onto, "picked", squash))

    def protect(
        self,
        pattern: str,
        *,
        kind: str | None = None,
        writers: Iterable[str] | None = None,
        only_publish: bool = False,
        fast_forward_only: bool = False,
        no_drop: bool = False,
        no_move: bool = False,
        no_rollback: bool = False,
        no_expiry: bool = False,
        checks: Iterable[str] = (),
        approvals: int = 0,
        bypass: Iterable[str] = (),
    ) -> None:
        """Protect the refs that match a pattern, such as `main`, `release/*` or `v*`, replacing its earlier rule.

        The rule is a property of the table: bergline honours it in every commit, and `bergline serve` for every client.
        """
        rule = make_rule(
            pattern,
            kind=kind,
            writers=writers,
            only_publish=only_publish,
            fast_forward_only=fast_forward_only,
            no_drop=no_drop,
            no_move=no_move,
            no_rollback=no_rollback,
            no_expiry=no_expiry,
            checks=checks,
            approvals=approvals,
            bypass=bypass,
        )
        self._run(set_rule(rule))

    def unprotect(self, pattern: str) -> None:
        """Remove the rule of a pattern; NotFoundError if there is none."""
        self._run(remove_rule(pattern))

    def rules(self) -> tuple[RefRule, ...]:
        """The table's own rules that protect refs, by pattern."""
        return parse_rules(self._metadata().properties)

    def protection(self) -> dict[str, tuple[ProtectingRule, ...]]:
        """For each ref the rules that match it: the table's own, those of its namespaces and those of the catalog."""
        metadata = self._metadata()
        rules = all_rules(metadata.properties, self._levels())
        return {name: protecting_rules(rules, name, is_branch=ref.is_branch) for name, ref in metadata.refs.items()}

    def scope_rules(self) -> tuple[RuleLevel, ...]:
        """The rules of the catalog and of the table's namespaces."""
        return self._levels()

    def diff(self, from_ref: str, to_ref: str) -> RefDiff:
        """How a ref differs from another as last loaded, from metadata alone; `table.changes` gives the rows."""
        return diff_refs(self._io, self._metadata(), from_ref, to_ref)

    def _of_kind(self, kind: SnapshotRefType) -> dict[str, SnapshotRef]:
        return {name: ref for name, ref in self._metadata().refs.items() if ref.snapshot_ref_type is kind}

    def _change(self, change: Callable[..., Change], *arguments: object) -> None:
        self._run(MetadataOperation(lambda base: change(base, *arguments)))

    def _replace(
        self, name: str, kind: SnapshotRefType, at: SnapshotChoice | None, retention: Retention | None
    ) -> None:
        wanted = Retention() if retention is None else retention
        if not isinstance(wanted, Retention):
            raise InvalidInputError(f"expected a Retention, found {shown(retention)}")
        self._run(
            MetadataOperation(
                lambda base: replace_ref(base, name, kind, _snapshot_at(base, at), wanted),
                overwrites=head_of(name),
            )
        )

    def _drop(self, name: str, kind: SnapshotRefType, *, if_exists: bool) -> None:
        self._run(
            MetadataOperation(lambda base: drop_ref(base, name, kind, if_exists=if_exists), overwrites=head_of(name))
        )

    def _leave(self, branch: str, target: Callable[[TableMetadata], int]) -> MergeResult:
        """Move a branch in a way that may drop its last snapshots from its history."""
        return self._move(
            branch,
            lambda base: move_branch(base, branch, target(base)),
            leaves=lambda base: left_behind(base, branch, target(base)),
        )

    def _move(
        self,
        branch: str,
        change: Callable[[TableMetadata], Change],
        leaves: Callable[[TableMetadata], object] = lambda _: None,
    ) -> MergeResult:
        previous: int | None = None

        def attempt(base: TableMetadata) -> Change:
            nonlocal previous
            moved = change(base)
            previous = base.refs[branch].snapshot_id if branch in base.refs else None
            return moved

        after = self._run(MetadataOperation(attempt, overwrites=leaves))
        return MergeResult(previous, after.ref(branch).snapshot_id)

    def _pick(self, find: Callable[[TableMetadata], Snapshot], branch: str) -> MergeResult:
        operation = CherryPick(self._io, find, branch=branch)
        self._run(operation)
        return operation.result

    def _merge(self, request: MergeRequest) -> MergeResult:
        operation = Merge(self._io, request)
        self._run(operation)
        return operation.result


def _snapshot_at(base: TableMetadata, at: SnapshotChoice | None) -> int | None:
    return None if at is None else snapshot_at(base, at)
