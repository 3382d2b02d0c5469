"""Changes to branches and tags, each computed anew on every base: updates and requirements."""

import datetime as dt
import uuid
from collections.abc import Callable, Collection

import msgspec

from bergline.arguments import check_text, counted, shown
from bergline.errors import AlreadyExistsError, InvalidInputError, NotFoundError, RefusedError
from bergline.format.metadata.refs import MAIN, SnapshotRef, SnapshotRefType, check_ref_name
from bergline.format.metadata.requirements import AssertRefSnapshotId
from bergline.format.metadata.snapshot_log import readable_ms
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.metadata.updates import RemoveSnapshotRef, Update, set_ref
from bergline.table.commits.operation import Change
from bergline.table.references.common_ancestor import find_divergence
from bergline.table.scans.version import SnapshotChoice, epoch_ms, snapshot_at

_NAME = "the name of a branch or tag"


class Retention(msgspec.Struct, frozen=True):
    """How long a ref and its history are kept; None leaves a setting as it is."""

    min_snapshots_to_keep: int | None = None
    max_snapshot_age_ms: int | None = None
    max_ref_age_ms: int | None = None

    def __post_init__(self) -> None:
        # zero never means "not set": refuse it here too, where None means "leave unchanged"
        SnapshotRef(
            0, SnapshotRefType.BRANCH, self.min_snapshots_to_keep, self.max_snapshot_age_ms, self.max_ref_age_ms
        )

    def given(self) -> dict[str, int]:
        """The settings that are given."""
        return {k: v for k, v in msgspec.structs.asdict(self).items() if v is not None}


def head_of(name: str) -> Callable[[TableMetadata], object]:
    """The snapshot of a ref: what moving or dropping it overwrites."""
    return lambda base: ref.snapshot_id if (ref := base.refs.get(name)) else None


def create_ref(
    base: TableMetadata,
    name: str,
    kind: SnapshotRefType,
    snapshot_id: int | None,
    retention: Retention,
    *,
    or_replace: bool = False,
) -> Change:
    """Create a branch or tag at a snapshot, by default the head of `main`; with `or_replace` an existing one moves."""
    check_ref_name(name)
    old = base.refs.get(name)
    if old is not None and not or_replace:
        raise AlreadyExistsError(f"{old.snapshot_ref_type} `{name}` exists already", kind="ref", name=name)
    if old is not None:
        return replace_ref(base, name, kind, snapshot_id, retention)
    _check_kind_of_main(name, kind)
    ref = _with_retention(SnapshotRef(_target(base, name, snapshot_id), kind), retention)
    return _set(base, name, ref)


def replace_ref(
    base: TableMetadata, name: str, kind: SnapshotRefType, snapshot_id: int | None, retention: Retention
) -> Change:
    """Move a ref to any snapshot; retention that is not given stays."""
    ref = existing_ref(base, name, kind)
    moved = msgspec.structs.replace(ref, snapshot_id=_target(base, name, snapshot_id))
    return _set(base, name, _with_retention(moved, retention))


def rename_ref(base: TableMetadata, name: str, kind: SnapshotRefType, to: str) -> Change:
    """Rename a ref; snapshot and retention stay. `main` is possible only as the new name of a branch."""
    check_ref_name(to)
    if kind is SnapshotRefType.BRANCH and name == MAIN:
        raise RefusedError("cannot rename branch `main`: every table keeps it")
    ref = existing_ref(base, name, kind)
    if to in base.refs:
        raise AlreadyExistsError(f"{base.refs[to].snapshot_ref_type} `{to}` exists already", kind="ref", name=to)
    _check_kind_of_main(to, kind)
    return Change(
        (RemoveSnapshotRef(name), set_ref(to, ref)),
        (AssertRefSnapshotId(name, ref.snapshot_id), AssertRefSnapshotId(to, None)),
    )


def move_branch(base: TableMetadata, branch: str, snapshot_id: int) -> Change:
    """Move a branch to any snapshot; `main` is created if a table has none yet."""
    if branch == MAIN and MAIN not in base.refs:
        return create_ref(base, MAIN, SnapshotRefType.BRANCH, snapshot_id, Retention())
    return replace_ref(base, branch, SnapshotRefType.BRANCH, snapshot_id, Retention())


def drop_ref(base: TableMetadata, name: str, kind: SnapshotRefType, *, if_exists: bool = False) -> Change:
    """Drop a ref; its snapshots stay until expiry."""
    check_text(name, _NAME)
    if kind is SnapshotRefType.BRANCH and name == MAIN:
        raise RefusedError("cannot drop branch `main`: every table keeps it")
    if if_exists and name not in base.refs:
        return Change()
    ref = existing_ref(base, name, kind)
    return Change((RemoveSnapshotRef(name),), (AssertRefSnapshotId(name, ref.snapshot_id),))


def hold_snapshot(snapshot_id: int) -> tuple[Update, Update]:
    """Updates that change nothing, but that every catalog refuses once the snapshot has expired.

    A commit that reuses its files needs them, and requirements are only about refs: a server that checks nothing else
    would accept a commit with files that expiry has deleted.
    """
    name = f"hold-{snapshot_id}-{uuid.uuid4()}"
    return set_ref(name, SnapshotRef(snapshot_id, SnapshotRefType.TAG)), RemoveSnapshotRef(name)


def fast_forward(base: TableMetadata, branch: str, to: str) -> Change:
    """Move a branch to a ref that descends from it; an absent branch is created there."""
    check_text(branch, _NAME)
    target = base.ref(to)
    if branch not in base.refs:
        return create_ref(base, branch, SnapshotRefType.BRANCH, target.snapshot_id, Retention())
    ref = existing_ref(base, branch, SnapshotRefType.BRANCH)
    if ref.snapshot_id == target.snapshot_id:
        return Change()
    if not base.is_ancestor(ref.snapshot_id, of=target.snapshot_id):
        raise _not_ahead(base, branch, to)
    return _set(base, branch, msgspec.structs.replace(ref, snapshot_id=target.snapshot_id))


def rollback_target(base: TableMetadata, branch: str, to: SnapshotChoice) -> int:
    """The snapshot to which a branch is rolled back: for a time, the last one in its history before it."""
    head = existing_ref(base, branch, SnapshotRefType.BRANCH).snapshot_id
    if isinstance(to, dt.datetime):
        return _last_before(base, branch, head, epoch_ms(to))
    target = snapshot_at(base, to)
    if not base.is_ancestor(target, of=head):
        raise RefusedError(
            f"cannot roll back `{branch}` to snapshot {target}: it is not in the history of `{branch}`",
            hints=[f'`refs.set_current("{branch}", to={target})` goes anywhere'],
        )
    return target


def left_behind(base: TableMetadata, branch: str, target: int) -> frozenset[int]:
    """The snapshots that a branch loses by moving to the target."""
    ref = base.refs.get(branch)
    if ref is None:
        return frozenset()
    stay = {s.snapshot_id for s in base.ancestors(target)}
    return frozenset([s.snapshot_id for s in base.ancestors(ref.snapshot_id) if s.snapshot_id not in stay])


def _last_before(base: TableMetadata, branch: str, head: int, moment_ms: int) -> int:
    history = list(base.ancestors(head))
    before = [s for s in history if s.timestamp_ms < moment_ms]
    if not before:
        raise NotFoundError(
            f"no snapshot of `{branch}` before {readable_ms(moment_ms)}",
            kind="snapshot",
            name=str(moment_ms),
            hints=[f"its history begins at {readable_ms(min(s.timestamp_ms for s in history))}"],
        )
    return max(before, key=lambda s: s.timestamp_ms).snapshot_id


def set_retention(base: TableMetadata, name: str, retention: Retention, clear: Collection[str]) -> Change:
    """Change how long a ref and its history are kept; for cleared settings, the table's apply again."""
    cleared = msgspec.structs.replace(base.ref(name), **dict.fromkeys(clear))
    return _set(base, name, _with_retention(cleared, retention))


def check_cleared(retention: Retention, clear: Collection[str]) -> None:
    """Refuse to clear unknown settings, or ones that are also given, and a call without any settings."""
    given, known = retention.given(), Retention.__struct_fields__
    for setting in clear:
        if setting not in known:
            raise InvalidInputError(f"expected settings of {', '.join(known)} to clear, found {shown(setting)}")
        if setting in given:
            raise InvalidInputError(f"expected {setting} to be set or cleared, found both")
    if not given and not clear:
        raise InvalidInputError(f"expected one of {', '.join(known)}, or `clear`, found no setting")


def _not_ahead(base: TableMetadata, branch: str, to: str) -> RefusedError:
    """Why a branch cannot be moved forward, and what to do instead."""
    divergence = find_divergence(base, base.ref(to).snapshot_id, base.ref(branch).snapshot_id)
    refusal = f"cannot fast-forward `{branch}` to `{to}`: `{branch}` is not an ancestor of `{to}`"
    if divergence is None:
        return RefusedError(
            f"{refusal}, as far as is known: their common ancestor has expired",
            hints=[f'`refs.merge("{to}", into="{branch}", squash=True)` merges `{to}` into `{branch}`'],
        )
    theirs, ours = len(divergence.picked), len(divergence.others)
    if theirs == 0:
        return RefusedError(
            f"{refusal}, but {counted(ours, 'snapshot')} ahead of it: there is nothing to move forward to"
        )
    parted = (
        "they have no common ancestor"
        if divergence.ancestor is None
        else f"they diverged at snapshot {divergence.ancestor_id}"
    )
    return RefusedError(
        f"{refusal}: {parted}, `{branch}` has had {counted(ours, 'snapshot')} since and `{to}` {theirs}",
        hints=[
            f'`refs.merge("{to}", into="{branch}")`, in SQL `CALL system.merge`, replays those of `{to}` on `{branch}`'
        ],
    )


def _check_kind_of_main(name: str, kind: SnapshotRefType) -> None:
    if name == MAIN and kind is SnapshotRefType.TAG:
        raise InvalidInputError("expected `main` to be a branch, found a tag")


def _set(base: TableMetadata, name: str, ref: SnapshotRef) -> Change:
    old = base.refs.get(name)
    if old == ref:
        return Change()
    return Change((set_ref(name, ref),), (AssertRefSnapshotId(name, old.snapshot_id if old else None),))


def existing_ref(base: TableMetadata, name: str, kind: SnapshotRefType) -> SnapshotRef:
    """The ref with this name and kind; NotFoundError, or InvalidInputError if it is of the other kind."""
    check_text(name, _NAME)
    ref = base.refs.get(name)
    if ref is None:
        known = [n for n, r in base.refs.items() if r.snapshot_ref_type is kind]
        raise base.missing_ref(name, kind, known)
    if ref.snapshot_ref_type is not kind:
        raise InvalidInputError(f"expected a {kind}, found the {ref.snapshot_ref_type} `{name}`")
    return ref


def _target(base: TableMetadata, name: str, snapshot_id: int | None) -> int:
    if snapshot_id is not None:
        return base.snapshot(snapshot_id).snapshot_id
    head = base.head(MAIN)
    if head is None:
        raise InvalidInputError(f"expected a snapshot for `{name}` to name, found an empty table")
    return head.snapshot_id


def _with_retention(ref: SnapshotRef, retention: Retention) -> SnapshotRef:
    return msgspec.structs.replace(ref, **retention.given())
