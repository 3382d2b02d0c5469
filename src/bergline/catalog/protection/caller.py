"""Who makes a change, and what the audit log is to say about rules that it passed."""

import contextlib
import getpass
from collections.abc import Collection, Iterator
from contextvars import ContextVar

import msgspec

from bergline.catalog.identifiers import TableName


class RuleNote(msgspec.Struct, frozen=True):
    """A line for the audit log: a rule was bypassed or changed."""

    operation: str
    rule: str


class Caller:
    """The one who makes a change; the notes are of the latest attempt at each table."""

    def __init__(self, name: str, groups: Collection[str] = ()) -> None:
        self.name = name
        self.groups = frozenset(groups)
        self.notes: dict[TableName, tuple[RuleNote, ...]] = {}


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


def requesting_caller() -> Caller | None:
    """The principal of the request that is served; None where this process acts for itself."""
    return _CALLER.get()


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user may have no name
        return ""
