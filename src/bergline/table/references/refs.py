"""`table.refs`: branches and tags as a user works with them."""

from collections.abc import Callable, Iterable, Iterator

from bergline.arguments import check_list, shown
from bergline.errors import InvalidInputError
from bergline.format.metadata.refs import SnapshotRef, SnapshotRefType
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.table.commits.operation import Change, MetadataOperation
from bergline.table.references.creating import NewRef
from bergline.table.references.moving import MovingRefs
from bergline.table.references.ref_changes import (
    Retention,
    check_cleared,
    drop_ref,
    place_of,
    rename_ref,
    replace_ref,
    set_retention,
)
from bergline.table.scans.version import SnapshotChoice, snapshot_at

_BRANCH, _TAG = SnapshotRefType.BRANCH, SnapshotRefType.TAG


class Refs(MovingRefs):
    """Every method is one commit, tried again when others come first; reading shows the table as last loaded.

    `at` is a snapshot id, a ref, or a moment: what `main` was then.
    """

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
        """A branch, by default at the head of `main`; on an empty table with an empty snapshot."""
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
        """A tag, by default at the head of `main`."""
        retention = Retention(max_ref_age_ms=max_ref_age_ms)
        self._run(NewRef(name, _TAG, retention, if_not_exists, or_replace).operation(self._io, at))

    def replace_branch(
        self, name: str, *, at: SnapshotChoice | None = None, retention: Retention | None = None
    ) -> None:
        """Move a branch anywhere, keeping the retention that is not mentioned."""
        self._replace(name, _BRANCH, at, retention)

    def replace_tag(self, name: str, *, at: SnapshotChoice | None = None, retention: Retention | None = None) -> None:
        """Move a tag: the only way a tag ever moves."""
        self._replace(name, _TAG, at, retention)

    def rename_branch(self, name: str, *, to: str) -> None:
        """Give a branch another name; `main` only to a branch of a table without one."""
        self._change(rename_ref, name, _BRANCH, to)

    def rename_tag(self, name: str, *, to: str) -> None:
        """Give a tag another name."""
        self._change(rename_ref, name, _TAG, to)

    def drop_branch(self, name: str, *, if_exists: bool = False) -> None:
        """Forget a branch; `main` is refused."""
        self._drop(name, _BRANCH, if_exists=if_exists)

    def drop_tag(self, name: str, *, if_exists: bool = False) -> None:
        """Forget a tag."""
        self._drop(name, _TAG, if_exists=if_exists)

    def set_retention(
        self,
        name: str,
        *,
        min_snapshots_to_keep: int | None = None,
        max_snapshot_age_ms: int | None = None,
        max_ref_age_ms: int | None = None,
        clear: Iterable[str] = (),
    ) -> None:
        """Change how long a ref and its history are kept; settings in `clear`, by name, are the table's again."""
        retention = Retention(min_snapshots_to_keep, max_snapshot_age_ms, max_ref_age_ms)
        cleared = check_list(clear, "setting")
        check_cleared(retention, cleared)
        self._change(set_retention, name, retention, cleared)

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
                overwrites=place_of(name),
            )
        )

    def _drop(self, name: str, kind: SnapshotRefType, *, if_exists: bool) -> None:
        self._run(
            MetadataOperation(lambda base: drop_ref(base, name, kind, if_exists=if_exists), overwrites=place_of(name))
        )


def _snapshot_at(base: TableMetadata, at: SnapshotChoice | None) -> int | None:
    return None if at is None else snapshot_at(base, at)
