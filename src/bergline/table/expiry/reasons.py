"""Why expiry keeps or removes a snapshot or a ref: each reason is one rule, which can describe itself."""

import msgspec

from bergline.format.metadata.refs import SnapshotRefType
from bergline.format.metadata.snapshot_log import readable_ms

_UNITS = {"d": 86_400_000, "h": 3_600_000, "min": 60_000, "s": 1000, "ms": 1}


class AgeLimit(msgspec.Struct, frozen=True):
    """Snapshots from `cutoff_ms` on are young; `age_ms` is None if the caller gave the time itself."""

    cutoff_ms: int
    age_ms: int | None = None

    def __str__(self) -> str:
        return readable_ms(self.cutoff_ms) if self.age_ms is None else duration_text(self.age_ms)


class Head(msgspec.Struct, frozen=True):
    """A live ref names the snapshot."""

    ref: str
    type: SnapshotRefType

    def __str__(self) -> str:
        return f"{self.type} `{self.ref}`"


class Young(msgspec.Struct, frozen=True):
    """The snapshot is young enough for a branch that it is on."""

    ref: str
    limit: AgeLimit

    def __str__(self) -> str:
        return f"not older than {self.limit}, on `{self.ref}`"


class AmongNewest(msgspec.Struct, frozen=True):
    """The snapshot is one of those that a branch keeps whatever their age."""

    ref: str
    count: int

    def __str__(self) -> str:
        return f"among the newest {self.count} of `{self.ref}`"


class KeptByRule(msgspec.Struct, frozen=True):
    """A rule keeps the whole history of a branch that the snapshot is on."""

    ref: str
    rule: str

    def __str__(self) -> str:
        return f"on `{self.ref}`, whose history the rule `{self.rule}` keeps"


class YoungWithoutRef(msgspec.Struct, frozen=True):
    """No live ref leads to the snapshot, but it is young: somebody may still publish it."""

    limit: AgeLimit

    def __str__(self) -> str:
        return f"not older than {self.limit}, on no branch or tag"


class Beyond(msgspec.Struct, frozen=True):
    """The snapshot is beyond what a branch keeps."""

    ref: str
    limit: AgeLimit
    count: int
    is_old: bool
    """False if the snapshot itself is young, but follows one that is not."""

    def __str__(self) -> str:
        old = f"older than {self.limit}" if self.is_old else f"before one older than {self.limit}"
        return f"{old}, beyond the newest {self.count} of `{self.ref}`"


class OldWithoutRef(msgspec.Struct, frozen=True):
    """No live ref leads to the snapshot, and it is old."""

    limit: AgeLimit

    def __str__(self) -> str:
        return f"older than {self.limit}, on no branch or tag"


class NamedByCaller(msgspec.Struct, frozen=True):
    """The caller named the snapshot."""

    def __str__(self) -> str:
        return "requested by its id"


class MainStays(msgspec.Struct, frozen=True):
    """`main` has no maximum age."""

    def __str__(self) -> str:
        return "`main` always stays"


class ProtectedByRule(msgspec.Struct, frozen=True):
    """A rule forbids dropping the ref."""

    rule: str

    def __str__(self) -> str:
        return f"protected by the rule `{self.rule}`"


class RefWithoutLimit(msgspec.Struct, frozen=True):
    """No setting limits the ref's age."""

    def __str__(self) -> str:
        return "no age limit"


class YoungRef(msgspec.Struct, frozen=True):
    """The ref's snapshot is young enough for the ref to stay."""

    age_ms: int

    def __str__(self) -> str:
        return f"its snapshot is not older than {duration_text(self.age_ms)}"


class OldRef(msgspec.Struct, frozen=True):
    """The ref's snapshot is older than the ref's maximum age."""

    age_ms: int

    def __str__(self) -> str:
        return f"its snapshot is older than {duration_text(self.age_ms)}"


KeepReason = Head | Young | AmongNewest | KeptByRule | YoungWithoutRef
RemoveReason = Beyond | OldWithoutRef | NamedByCaller
RefReason = MainStays | ProtectedByRule | RefWithoutLimit | YoungRef | OldRef


def duration_text(milliseconds: int) -> str:
    """A duration in the largest unit that is exact."""
    unit, size = next((u, s) for u, s in _UNITS.items() if milliseconds % s == 0)
    return f"{milliseconds // size} {unit}"
