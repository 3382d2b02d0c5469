"""Collects findings: a bounded number of each kind, completed by the refs that they concern."""

import threading
from collections import Counter
from collections.abc import Iterable

import msgspec

from bergline.errors import BerglineError, NotFoundError, UnsupportedError
from bergline.format.metadata.refs import MAIN
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.reports.check.finding import Finding, Severity

_MOST_OF_A_CODE = 20
_NAMED = 3
_ORDER = list(Severity)
RESTORE = "restore it from a backup, or as an older version of the object where the store keeps some"


class _Made(msgspec.Struct, frozen=True):
    finding: Finding
    snapshots: frozenset[int]
    expiry_helps: bool


class Findings:
    """Collects the findings in one table; several threads may add to it."""

    def __init__(self, most: int = _MOST_OF_A_CODE) -> None:
        self._most = most
        self._made: list[_Made] = []
        self._counts: Counter[str] = Counter()
        self._broken: set[int] = set()
        self._lock = threading.Lock()

    def error(
        self,
        code: str,
        place: str,
        message: str,
        mend: str,
        *,
        snapshots: Iterable[int] = (),
        expiry_helps: bool = False,
    ) -> None:
        """Add an error; `snapshots` cannot be read correctly, `expiry_helps` if removing them would repair it."""
        needed = frozenset(snapshots)
        finding = Finding(Severity.ERROR, code, place, message, mend)
        with self._lock:
            self._broken |= needed
            self._add(_Made(finding, needed, expiry_helps))

    def warning(self, code: str, place: str, message: str, mend: str) -> None:
        """Add a warning."""
        with self._lock:
            self._add(_Made(Finding(Severity.WARNING, code, place, message, mend), frozenset(), False))

    def note(self, code: str, place: str, message: str, mend: str) -> None:
        """Add a note."""
        with self._lock:
            self._add(_Made(Finding(Severity.NOTE, code, place, message, mend), frozenset(), False))

    def unreadable(self, what: str, place: str, error: BerglineError, *, snapshots: Iterable[int] = ()) -> None:
        """Add the finding for an error in reading a file; `what` is the kind of file, as in `manifest list`."""
        code = what.replace(" ", "-")
        if isinstance(error, UnsupportedError):
            self.warning(f"{code}-unsupported", place, str(error), "check it with the engine that wrote it")
        elif isinstance(error, NotFoundError):
            self.error(f"{code}-missing", place, f"the {what} does not exist", RESTORE, snapshots=snapshots)
        else:
            self.error(f"{code}-unreadable", place, str(error), RESTORE, snapshots=snapshots)

    def finish(self, metadata: TableMetadata | None) -> tuple[tuple[Finding, ...], dict[str, int]]:
        """All findings, errors first, with the refs that they concern; and how many were left out, by code."""
        found = [self._completed(one, metadata) for one in self._made]
        found.sort(key=lambda finding: _ORDER.index(finding.severity))
        return tuple(found), {code: n - self._most for code, n in self._counts.items() if n > self._most}

    def _add(self, made: _Made) -> None:
        code = made.finding.code
        self._counts[code] += 1
        if self._counts[code] <= self._most:
            self._made.append(made)

    def _completed(self, made: _Made, metadata: TableMetadata | None) -> Finding:
        if metadata is None or not made.snapshots:
            return made.finding
        refs = tuple(sorted(name for name, ref in metadata.refs.items() if ref.snapshot_id in made.snapshots))
        ways = [made.finding.mend]
        if MAIN in refs and (whole := self._newest_whole(metadata)) is not None:
            ways.append(f"or roll `{MAIN}` back to snapshot {whole}, the newest intact one in its history")
        others = [name for name in refs if name != MAIN]
        if made.expiry_helps and others:
            ways.append(f"or drop {_names(f'`{name}`' for name in others)} and expire its snapshots")
        elif made.expiry_helps and not refs:
            ways.append(f"or expire {_names(f'snapshot {number}' for number in sorted(made.snapshots))}")
        return msgspec.structs.replace(made.finding, refs=refs, mend="; ".join(ways))

    def _newest_whole(self, metadata: TableMetadata) -> int | None:
        main = metadata.refs.get(MAIN)
        history = metadata.ancestors(None if main is None else main.snapshot_id)
        return next((s.snapshot_id for s in history if s.snapshot_id not in self._broken), None)


def _names(names: Iterable[str]) -> str:
    named = list(names)
    more = len(named) - _NAMED
    return ", ".join(named[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")
