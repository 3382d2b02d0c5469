"""Who makes a change, and what the audit log is to say about rules that it passed."""

import contextlib
import getpass
from collections.abc import Collection, Iterator, Mapping
from contextvars import ContextVar
from typing import Final

import msgspec

from bergline.catalog.identifiers import TableName
from bergline.format.metadata.table_metadata import TableMetadata

GROUP: Final = "group:"
"""How a rule names a group."""


class RuleNote(msgspec.Struct, frozen=True):
    """A line for the audit log: a rule was bypassed or changed."""

    operation: str
    rule: str


class ChangedTable(msgspec.Struct, frozen=True):
    """A table before and after a change; None if it did not exist before, or does not exist after."""

    before: TableMetadata | None
    after: TableMetadata | None


class StandIn(msgspec.Struct, frozen=True):
    """A snapshot whose reviews count for the one that a merge makes of it.

    Approvals always count. Checks count if both have the same rows, that is if the target had nothing that the branch
    did not have.
    """

    head: int
    author: str | None = None
    """Who asks for the merge, whose own approval does not count."""


class Caller:
    """The one who makes a change; notes and changes are of the latest attempt at each table."""

    def __init__(self, name: str, groups: Collection[str] = ()) -> None:
        self.name = name
        self.groups = frozenset(groups)
        self.notes: dict[TableName, tuple[RuleNote, ...]] = {}
        self.changes: dict[TableName, ChangedTable] = {}
        self.view_locations: dict[TableName, str] = {}
        """Where the views that are made or changed put their files from then on."""
        self.made: msgspec.Struct | None = None
        """What the latest change makes of something that is no table, such as a pull request."""
        self.stands_for: dict[TableName, StandIn] = {}
        """What a server's own publish has made of reviewed heads; no client can say so."""
        self.administers = False
        """Whether the caller may change rules that others have set, as the grants of a server say."""


_CALLER: ContextVar[Caller | None] = ContextVar("caller", default=None)


@contextlib.contextmanager
def acting_as(name: str, groups: Collection[str] = ()) -> Iterator[Caller]:
    """Changes that this thread makes in the block are made by a principal, as a server has authenticated it."""
    with acting_for(Caller(name, groups)) as caller:
        yield caller


@contextlib.contextmanager
def acting_for(caller: Caller) -> Iterator[Caller]:
    """Changes that this thread makes in the block are made by a caller, who may have made others before."""
    token = _CALLER.set(caller)
    try:
        yield caller
    finally:
        _CALLER.reset(token)


def current_caller() -> Caller:
    """The principal of the request that is served; else whoever runs this process."""
    return _CALLER.get() or Caller(_user())


def see_change(table: TableName, before: TableMetadata | None, after: TableMetadata | None) -> None:
    """Remember what a change is about to do to a table, for the record that a server writes."""
    caller = _CALLER.get()
    if caller is not None:
        caller.changes[table] = ChangedTable(before, after)


def see_made(record: msgspec.Struct) -> None:
    """Remember what a change is about to make of something other than a table, likewise."""
    caller = _CALLER.get()
    if caller is not None:
        caller.made = record


def is_among(names: Collection[str], caller: str, groups: Collection[str]) -> bool:
    """Whether a list in a rule names a caller or one of its groups; a caller that is named like a group does not."""
    return any(n[len(GROUP) :] in groups if n.startswith(GROUP) else n == caller for n in names)


def requesting_caller() -> Caller | None:
    """The principal of the request that is served; None if this process acts for itself."""
    return _CALLER.get()


@contextlib.contextmanager
def standing_for(heads: Mapping[TableName, int], author: str) -> Iterator[None]:
    """In the block, reviews of these heads count for the snapshots that a merge makes of them for an author."""
    caller = _CALLER.get()
    if caller is None:
        with acting_as(_user()), standing_for(heads, author):
            yield
        return
    before, caller.stands_for = caller.stands_for, {table: StandIn(head, author) for table, head in heads.items()}
    try:
        yield
    finally:
        caller.stands_for = before


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user may have no name
        return ""
