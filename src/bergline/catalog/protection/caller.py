"""Who makes a change, and what the audit log is to say about rules that it passed."""

import contextlib
import getpass
from collections.abc import Collection, Iterator, Mapping
from contextvars import ContextVar

import msgspec

from bergline.catalog.identifiers import TableName


class RuleNote(msgspec.Struct, frozen=True):
    """A line for the audit log: a rule was bypassed or changed."""

    operation: str
    rule: str


class StandIn(msgspec.Struct, frozen=True):
    """The head of a branch whose reviews count for the snapshot that a merge makes of it."""

    head: int
    same_content: bool


class Caller:
    """The one who makes a change; the notes are of the latest attempt at each table."""

    def __init__(self, name: str, groups: Collection[str] = ()) -> None:
        self.name = name
        self.groups = frozenset(groups)
        self.notes: dict[TableName, tuple[RuleNote, ...]] = {}
        self.stands_for: dict[TableName, StandIn] = {}


_CALLER: ContextVar[Caller | None] = ContextVar("caller", default=None)


@contextlib.contextmanager
def acting_as(name: str, groups: Collection[str] = ()) -> Iterator[Caller]:
    """Changes that this thread makes in the block are made by a principal, as a server has authenticated it."""
    caller = Caller(name, groups)
    token = _CALLER.set(caller)
    try:
        yield caller
    finally:
        _CALLER.reset(token)


def current_caller() -> Caller:
    """The principal of the request that is served; else whoever runs this process."""
    return _CALLER.get() or Caller(_user())


@contextlib.contextmanager
def standing_for(heads: Mapping[TableName, int]) -> Iterator[None]:
    """In the block, reviews of these heads count for the snapshots that a merge makes of them."""
    caller = _CALLER.get()
    if caller is None:
        with acting_as(_user()), standing_for(heads):
            yield
        return
    before, caller.stands_for = caller.stands_for, {t: StandIn(head, same_content=False) for t, head in heads.items()}
    try:
        yield
    finally:
        caller.stands_for = before


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user may have no name
        return ""
