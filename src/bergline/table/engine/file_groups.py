"""Which files are worth rewriting, and in which groups: the rules of Iceberg's rewrite planners.

They hold for data files and for position delete files, whatever the engine.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Literal, TypeVar

import msgspec

_SPLIT_OVERHEAD: Final = 5 * 1024
_CLOSE_TO_TARGET: Final = 1.1
JobOrder = Literal["none", "bytes-asc", "bytes-desc", "files-asc", "files-desc"]
Item = TypeVar("Item")


class SizeRules(msgspec.Struct, frozen=True):
    """How large files should be, which sizes are acceptable, and how many files a group must have."""

    target: int
    least: int
    most: int
    min_input_files: int = 5
    rewrite_all: bool = False
    largest_group: int = 100 * 1024**3
    most_group_files: int | None = None
    only_fewer: bool = False
    """Whether files are rewritten only if they become fewer: large files stay."""

    @property
    def largest_file(self) -> int:
        """The size at which a new file ends, slightly above the target, so that no small remainder is left."""
        return int(self.target + (self.most - self.target) * 0.5)

    def is_off(self, size: int) -> bool:
        """Whether a file is too small or too large."""
        return size < self.least or (size > self.most and not self.only_fewer)

    def is_worth_it(self, sizes: Sequence[int]) -> bool:
        """Whether files of these sizes should be rewritten together."""
        total = sum(sizes)
        if self.only_fewer:
            return len(sizes) >= self.min_input_files and -(-total // self.target) < len(sizes)
        several = len(sizes) > 1
        return (several and (len(sizes) >= self.min_input_files or total > self.target)) or total > self.most

    def expected_files(self, size: int) -> int:
        """The number of files for these bytes: a remainder goes into the others if they stay close to the target."""
        if size < self.target:
            return 1
        full, rest = divmod(size, self.target)
        if rest > self.least:
            return full + 1
        close = size // full < min(_CLOSE_TO_TARGET * self.target, self.largest_file)
        return full if close or not rest else full + 1

    def split_size(self, size: int) -> int:
        """How many of these bytes one task reads, to write one file."""
        estimated = size // self.expected_files(size) + _SPLIT_OVERHEAD
        return self.target if estimated < self.target else min(estimated, self.largest_file)


def packed(
    items: Iterable[Item],
    weight: Callable[[Item], int],
    limit: int,
    *,
    lookback: int = 1,
    most_items: int | None = None,
) -> list[list[Item]]:
    """Pack items into bins in order; only a single item may exceed the limit. The heaviest open bin is closed first.

    Only the last few bins, `lookback`, are open for further items.
    """
    done: list[list[Item]] = []
    bins: list[tuple[int, list[Item]]] = []
    for item in items:
        size = weight(item)
        for place, (filled, content) in enumerate(bins):
            if filled + size <= limit and (most_items is None or len(content) < most_items):
                content.append(item)
                bins[place] = (filled + size, content)
                break
        else:
            bins.append((size, [item]))
            if len(bins) > lookback:
                heaviest = max(range(len(bins)), key=lambda place: bins[place][0]) if lookback > 1 else 0
                done.append(bins.pop(heaviest)[1])
    return done + [content for _, content in bins]


def in_job_order(groups: Iterable[list[Item]], size: Callable[[Item], int], order: JobOrder) -> list[list[Item]]:
    """The groups in the order in which to rewrite them."""
    what, _, direction = order.partition("-")
    if what == "none":
        return list(groups)
    key = len if what == "files" else lambda group: sum(map(size, group))
    return sorted(groups, key=key, reverse=direction == "desc")


def trimmed(groups: Iterable[list[Item]], most_files: int | None) -> list[list[Item]]:
    """The first groups, until they have this many files."""
    if most_files is None:
        return list(groups)
    left, kept = most_files, []
    for group in groups:
        if left > 0:
            kept.append(group[:left])
            left -= len(kept[-1])
    return kept
