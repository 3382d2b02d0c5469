"""The plan of a merge or rebase on one base: a ref that only moves, or two lines of history to be merged."""

from typing import Literal

import msgspec

from bergline.arguments import check_text
from bergline.errors import InvalidInputError, RefusedError
from bergline.format.metadata.refs import MAIN
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.fileio import FileIO
from bergline.table.commits.branches import check_writable
from bergline.table.references.common_ancestor import Divergence, find_divergence
from bergline.table.references.squash import squash_divergence


class MergeRequest(msgspec.Struct, frozen=True):
    """Which ref's snapshots go on top of which other, and which of the two moves."""

    picked: str
    onto: str
    moves: Literal["picked", "onto"]
    squash: bool = False
    """Whether to replay the difference of the two ends as one snapshot."""

    def __post_init__(self) -> None:
        for name in (self.picked, self.onto):
            check_text(name, "the name of a branch or tag")
        if self.picked == self.onto:
            raise InvalidInputError(f"expected two branches, found `{self.onto}` twice")

    @property
    def moved(self) -> str:
        """The ref that moves."""
        return self.picked if self.moves == "picked" else self.onto

    @property
    def refusal(self) -> str:
        """The beginning of errors about it."""
        if self.moves == "onto":
            return f"cannot merge `{self.picked}` into `{self.onto}`"
        return f"cannot rebase `{self.picked}` onto `{self.onto}`"


class MergePlan(msgspec.Struct, frozen=True):
    """Where the moved ref goes first, if at all, and what to replay on top of that."""

    start: int | None = None
    divergence: Divergence | None = None


def plan_merge(io: FileIO, base: TableMetadata, request: MergeRequest) -> MergePlan:
    """The plan on this base; RefusedError if it depends on expired snapshots."""
    picked = base.ref(request.picked).snapshot_id
    if request.onto == request.moved == MAIN and MAIN not in base.refs:
        return MergePlan(picked)
    onto = base.ref(request.onto).snapshot_id
    check_writable(base.refs[request.moved], request.moved)
    if base.is_ancestor(picked, of=onto):
        return MergePlan(onto if request.moves == "picked" and picked != onto else None)
    if base.is_ancestor(onto, of=picked):
        return MergePlan(picked if request.moves == "onto" else None)
    divergence = find_divergence(base, picked, onto)
    if divergence is None and request.squash:
        divergence = squash_divergence(io, base, picked, onto)
    if divergence is None:
        raise _unknown(base, request)
    return MergePlan(onto if request.moves == "picked" else None, divergence)


def _unknown(base: TableMetadata, request: MergeRequest) -> RefusedError:
    """The error for an expired common ancestor: the oldest known parents show which snapshots are missing."""
    oldest = {name: list(base.ancestors(base.ref(name).snapshot_id))[-1] for name in (request.picked, request.onto)}
    missing = [f"{s.parent_snapshot_id} of `{name}`" for name, s in oldest.items() if s.parent_snapshot_id is not None]
    hints = (
        ["append the rows that `changes` returns, or keep snapshots for longer than branches"]
        if request.squash
        else ["`squash=True` replays the difference of the two ends, if their common ancestor still exists"]
    )
    return RefusedError(
        f"{request.refusal}: their common ancestor cannot be found, because snapshots have expired: "
        f"{' and '.join(missing)}",
        hints=hints,
    )
