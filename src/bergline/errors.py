"""Every error that bergline raises, grouped by what the caller should do next.

BerglineError
├── ConflictError           load again, then retry
├── CommitUnknownError      find out what happened before you retry; nothing was deleted
├── NotFoundError           the name does not exist
├── AlreadyExistsError      the name is taken
├── InvalidInputError       correct the call                          (also a ValueError)
│   └── SqlSyntaxError      correct the statement, at line and column
├── FormatError             the bytes break the specification
├── UnsupportedError        right in principle, not possible here
├── AuthenticationError     provide valid credentials
├── RefusedError            a rule forbids it
│   ├── NotEmptyError       a namespace that holds something is not dropped
│   ├── ProtectedRefError   a rule protects the branch or tag
│   └── TablesRefusedError  some of several tables cannot, so none was changed
├── UnavailableError        try later; nothing was changed
└── StorageError            files or network failed
    └── MetadataChangedError  a metadata file is not the one that was written
"""

import bisect
import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

_MOST_COMPARED = 500
_LONGEST_COMPARED = 500
_MISSING = {
    "table": "TABLE_OR_VIEW_NOT_FOUND",
    "metadata table": "TABLE_OR_VIEW_NOT_FOUND",
    "view": "VIEW_NOT_FOUND",
    "namespace": "SCHEMA_NOT_FOUND",
    "column": "UNRESOLVED_COLUMN.WITH_SUGGESTION",
    "procedure": "FAILED_TO_LOAD_ROUTINE",
    "argument": "UNRECOGNIZED_PARAMETER_NAME",
}
_TAKEN = {
    "table": "TABLE_OR_VIEW_ALREADY_EXISTS",
    "view": "TABLE_OR_VIEW_ALREADY_EXISTS",
    "namespace": "SCHEMA_ALREADY_EXISTS",
    "column": "FIELD_ALREADY_EXISTS",
}
"""Spark's conditions for things of these kinds, if nothing else is said."""


class BerglineError(Exception):
    """Base of all errors; `code` is stable, `hints` say what would be right, `condition` is Spark's name for it."""

    code: ClassVar[str] = "error"
    condition: str | None = None
    neighbour: tuple[str, Any] | None = None
    """Another table or view that the message names: its kind and its name."""
    told: "BerglineError | None" = None
    """What callers of a server are told instead if they may not see the neighbour."""

    def __init__(self, message: str, *, hints: Sequence[str] = (), condition: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hints = tuple(hints)
        if condition is not None:
            self.condition = condition
        for hint in self.hints:
            self.add_note(f"hint: {hint}")

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.args, self.__dict__)


class ConflictError(BerglineError):
    """Another commit changed what this one builds on: load again, then retry."""

    code = "conflict"


class CommitUnknownError(BerglineError):
    """It is unknown whether the commit happened; nothing was deleted."""

    code = "commit-unknown"

    def __init__(self, message: str, *, table: str, metadata_location: str | None, hints: Sequence[str] = ()) -> None:
        super().__init__(message, hints=hints)
        self.table = table
        self.metadata_location = metadata_location


class NotFoundError(BerglineError):
    """A namespace, table, ref, snapshot, column, procedure or file does not exist."""

    code = "not-found"

    def __init__(
        self,
        message: str,
        *,
        kind: str,
        name: str,
        known: Iterable[str] = (),
        hints: Sequence[str] = (),
        condition: str | None = None,
    ) -> None:
        near = near_names(name, known)
        all_hints = [*hints, f"did you mean {', '.join(f'`{n}`' for n in near)}?"] if near else hints
        super().__init__(message, hints=all_hints, condition=condition or _MISSING.get(kind))
        self.kind = kind
        self.name = name
        self.near = near


class AlreadyExistsError(BerglineError):
    """The name is taken."""

    code = "already-exists"

    def __init__(
        self, message: str, *, kind: str, name: str, hints: Sequence[str] = (), condition: str | None = None
    ) -> None:
        super().__init__(message, hints=hints, condition=condition or _TAKEN.get(kind))
        self.kind = kind
        self.name = name


class InvalidInputError(BerglineError, ValueError):
    """The call cannot be carried out as written."""

    code = "invalid-input"


class SqlSyntaxError(InvalidInputError):
    """A statement does not parse; `line` and `column` count from 1."""

    code = "sql-syntax"
    condition = "PARSE_SYNTAX_ERROR"

    def __init__(
        self, message: str, *, line: int, column: int, hints: Sequence[str] = (), condition: str | None = None
    ) -> None:
        super().__init__(f"{message} at line {line}, column {column}", hints=hints, condition=condition)
        self.line = line
        self.column = column


class FormatError(BerglineError):
    """Bytes that should follow the Iceberg specification do not."""

    code = "format"


class UnsupportedError(BerglineError):
    """Right in principle, but not possible here."""

    code = "unsupported"


class AuthenticationError(BerglineError):
    """The caller's identity is missing or not accepted."""

    code = "authentication"


class RefusedError(BerglineError):
    """A rule forbids it."""

    code = "refused"


class NotEmptyError(RefusedError):
    """A namespace that holds something is not dropped."""

    code = "not-empty"
    condition = "SCHEMA_NOT_EMPTY"


class ProtectedRefError(RefusedError):
    """A rule protects a branch or tag from this change; nothing was changed."""

    code = "protected-ref"

    def __init__(self, message: str, *, table: str, ref: str, rule: str, hints: Sequence[str] = ()) -> None:
        super().__init__(message, hints=hints)
        self.table = table
        self.ref = ref
        self.rule = rule


class TablesRefusedError(RefusedError):
    """A change to several tables that some of them refuse: none was changed; `reasons` has the error of each."""

    code = "tables-refused"

    def __init__(self, message: str, *, reasons: Mapping[str, BerglineError]) -> None:
        each = "".join(f"\n  `{table}`: {reason}" for table, reason in reasons.items())
        hints = dict.fromkeys(hint for reason in reasons.values() for hint in reason.hints)
        super().__init__(f"{message}{each}", hints=list(hints))
        self.reasons = dict(reasons)


class UnavailableError(BerglineError):
    """The store does not respond; it is certain that nothing was changed."""

    code = "unavailable"


class StorageError(BerglineError):
    """Reading or writing files or the catalog's database failed."""

    code = "storage"


class MetadataChangedError(StorageError):
    """A metadata file is not the one that the catalog wrote: something else replaced it, or damaged it."""

    code = "metadata-changed"


def near_names(name: str, known: Iterable[str], likeness: float = 0.7) -> tuple[str, ...]:
    """The known names most similar to `name`, best first; of very many, only its neighbours are compared."""
    if len(name) > _LONGEST_COMPARED:  # comparing takes the product of both lengths
        return ()
    by_folded, folded = {k.casefold(): k for k in known if len(k) <= _LONGEST_COMPARED}, name.casefold()
    looked_at = list(by_folded)
    if len(looked_at) > _MOST_COMPARED:
        looked_at.sort()
        first = max(bisect.bisect(looked_at, folded) - _MOST_COMPARED // 2, 0)
        looked_at = looked_at[first : first + _MOST_COMPARED]
    return tuple(by_folded[m] for m in difflib.get_close_matches(folded, looked_at, n=3, cutoff=likeness))


def _restore(kind: type[BerglineError], args: tuple[Any, ...], fields: dict[str, Any]) -> BerglineError:
    """Restore an error that crossed a process boundary."""
    error = kind.__new__(kind, *args)
    error.__dict__.update(fields)
    return error
