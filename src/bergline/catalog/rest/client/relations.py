"""The relations of a REST catalog, its tables or its views: what is done with them by name."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from bergline.catalog.catalog import DroppedTable, DroppedView, LoadedTable, LoadedView, UnprovenDropError
from bergline.catalog.identifiers import Namespace, TableName
from bergline.catalog.rest.client.calls import ParsedResponse
from bergline.catalog.rest.client.error_responses import CallSubject
from bergline.catalog.rest.client.name_conflicts import name_taken_error
from bergline.catalog.rest.client.retries import ChangeInDoubtError
from bergline.catalog.rest.client.session import RestSession
from bergline.catalog.rest.client.settle import UnsettledError, happened, settle
from bergline.catalog.rest.protocol.bodies import ListTablesResponse, RenameRequest
from bergline.catalog.rest.protocol.endpoints import Endpoint
from bergline.catalog.rest.protocol.trash import UndropRequest
from bergline.errors import (
    AlreadyExistsError,
    BerglineError,
    CommitUnknownError,
    ConflictError,
    NotFoundError,
    UnavailableError,
    UnsupportedError,
)

_Loaded = TypeVar("_Loaded", bound=LoadedTable | LoadedView)


class RelationEndpoints(NamedTuple):
    """The endpoints for relations of one kind."""

    kind: str
    names: Endpoint
    rename: Endpoint
    drop: Endpoint
    undrop: Endpoint


class RestRelations(ABC, Generic[_Loaded]):
    """Tables or views of a REST catalog, over a session."""

    def __init__(self, session: RestSession, endpoints: RelationEndpoints) -> None:
        self._session = session
        self._endpoints = endpoints
        self._kind = endpoints.kind

    @abstractmethod
    def load(self, name: TableName) -> _Loaded:
        """Load the current state of one."""

    @abstractmethod
    def parsed(self, name: TableName, response: ParsedResponse) -> _Loaded:
        """The one in a response."""

    @abstractmethod
    def dropped(self, most: int | None = None) -> Sequence[DroppedTable] | Sequence[DroppedView]:
        """Those in the server's trash, or so many of them, newest first; none on a server that keeps none."""

    def after_change(self, name: TableName, response: ParsedResponse) -> _Loaded:
        """The one in the response to a change; ChangeInDoubtError if it cannot be read."""
        try:
            return self.parsed(name, response)
        except BerglineError as error:
            raise ChangeInDoubtError(str(error)) from error

    def existing(self, name: TableName) -> _Loaded | None:
        """The one of a name; None if there is none."""
        try:
            return self.load(name)
        except NotFoundError:
            return None

    def about(self, name: TableName) -> CallSubject:
        """One of them, for messages."""
        return CallSubject(self._kind, str(name))

    def unknown(self, name: TableName, what: str, cause: object) -> CommitUnknownError:
        """The error for a change whose outcome is unknown."""
        message = f"cannot find out whether {self._kind} `{name}` was {what}: {cause}"
        return CommitUnknownError(message, table=str(name), metadata_location=None)

    def rename(self, name: TableName, new: TableName) -> None:
        """Rename one; its files stay where they are."""
        before = self.load(name)
        self._check_gone(before, f"the {self._kind} renamed to `{new}`")

        def send() -> None:
            try:
                self._session.calls.change(self._endpoints.rename, self.about(name), body=RenameRequest(name, new))
            except AlreadyExistsError as error:
                raise name_taken_error(self._session, new) from error

        def look() -> bool:
            now = self.existing(new)
            return now is not None and self._is_same(now, before) and self.existing(name) is None

        what, waits = f"{self._kind} `{name}` was renamed to `{new}`", self._session.waits()
        happened(send, look, what=what, name=str(name), waits=waits, always_look=True, doubt_refusals=True)
        self._forget(name)
        self._forget(new)

    def drop(self, name: TableName, expected: str | None = None, *, purge: bool = False) -> None:
        """Drop one; its files stay, unless the server is asked to purge a table.

        The protocol drops unconditionally, so an expected pointer is compared right before, and a later commit goes
        unnoticed. A caller that expects a pointer deletes files next: then the name must be gone, and an
        UnprovenDropError tells that the server did not confirm the drop.
        """
        about, is_lost = self.about(name), False
        before = self._readable(name) if expected is None else self.load(name)
        if expected is not None and before is not None and before.metadata_location != expected:
            raise ConflictError(f"{about} moved on while it was dropped", hints=["try again"])
        if before is not None:
            self._check_gone(before, f"the {self._kind} dropped")

        def send() -> None:
            nonlocal is_lost
            names = self._session.table_path(name, self._kind)
            query = {"purgeRequested": str(purge).lower()} if self._kind == "table" else None
            try:
                self._session.calls.change(self._endpoints.drop, about, names=names, query=query)
            except ChangeInDoubtError:
                is_lost = True
                raise

        def is_gone() -> bool:
            try:
                now = self.existing(name)
            except BerglineError:
                if expected is None:
                    raise
                return False
            return now is None or (before is not None and not self._is_same(now, before))

        what, waits = f"{about} was dropped", self._session.waits()
        doubt_refusals = before is not None
        happened(send, is_gone, what=what, name=str(name), waits=waits, always_look=True, doubt_refusals=doubt_refusals)
        self._forget(name)
        if expected is not None and is_lost:
            raise UnprovenDropError(name, expected)

    def undrop(self, name: TableName, to: TableName | None = None) -> _Loaded:
        """Take one out of the server's trash; after a lost response, one with its metadata file is it."""
        endpoint, new = self._endpoints.undrop, to or name
        if not self._session.calls.has(endpoint):
            raise UnsupportedError(
                f"cannot bring `{name}` back: the server keeps no dropped {self._kind}s",
                hints=["`bergline serve --drop-retention 7d` does"],
            )
        locations = {dropped.metadata_location for dropped in self.dropped() if dropped.name == name}

        def send() -> _Loaded:
            names, about = self._session.table_path(name, self._kind), self.about(new)
            changed = self._session.calls.change(endpoint, about, names=names, body=UndropRequest(to))
            return self.after_change(new, changed)

        def look() -> _Loaded | None:
            now = self.existing(new)
            return now if now is not None and locations & self._line(now) else None

        if self._is_taken(new):
            raise name_taken_error(self._session, new)
        try:
            return settle(send, look, may_resend=False, waits=self._session.waits())
        except AlreadyExistsError as error:
            raise name_taken_error(self._session, new) from error
        except UnsettledError as error:
            raise self.unknown(new, "taken out of the trash", error) from error

    def names_in(self, namespace: Namespace) -> list[TableName]:
        """The names in a namespace."""
        return self._names_in(namespace, {})

    def _names_in(self, namespace: Namespace, asked: Mapping[str, str]) -> list[TableName]:
        about, names = CallSubject("namespace", ".".join(namespace)), self._session.namespace_path(namespace)
        pages = self._session.pages(self._endpoints.names, ListTablesResponse, about, names=names, asked=asked)
        return sorted(name for page in pages for name in page.identifiers)

    @abstractmethod
    def _is_same(self, now: _Loaded, before: _Loaded) -> bool:
        """Whether one is the same as one loaded before, under any name."""

    @abstractmethod
    def _line(self, loaded: _Loaded) -> set[str]:
        """The metadata files that are known to be of one."""

    def _is_taken(self, name: TableName) -> bool:
        """Whether a name is taken, so that it is not mistaken for ours after a lost response."""
        return self.existing(name) is not None

    def _check_gone(self, before: _Loaded, done: str) -> None:
        """Refuse to take one from its name; `done` says how it goes."""

    def _forget(self, name: TableName) -> None:
        """Told of a name that has another now, or none."""

    def _readable(self, name: TableName) -> _Loaded | None:
        """The one of a name, or None if it cannot be read: it can be dropped all the same."""
        try:
            return self.load(name)
        except UnavailableError:
            raise
        except BerglineError:
            return None
