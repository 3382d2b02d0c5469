"""Views of a REST catalog."""

from itertools import islice

import msgspec

from bergline.catalog.catalog import DroppedView, LoadedView, ViewChange
from bergline.catalog.identifiers import Namespace, TableName
from bergline.catalog.rest.client.calls import ParsedResponse
from bergline.catalog.rest.client.error_responses import CallSubject
from bergline.catalog.rest.client.name_conflicts import is_table, name_taken_error
from bergline.catalog.rest.client.namespaces import RestNamespaces
from bergline.catalog.rest.client.retries import ChangeInDoubtError
from bergline.catalog.rest.client.settle import UnsettledError, happened, settle
from bergline.catalog.rest.protocol.bodies import (
    CommitViewRequest,
    CreateViewRequest,
    ListTablesResponse,
    LoadViewResult,
    RenameRequest,
)
from bergline.catalog.rest.protocol.endpoints import (
    COMMIT_VIEW,
    CREATE_VIEW,
    DROP_VIEW,
    LIST_DROPPED_VIEWS,
    LIST_VIEWS,
    LOAD_VIEW,
    RENAME_VIEW,
    UNDROP_VIEW,
)
from bergline.catalog.rest.protocol.trash import ListDroppedViewsResponse, UndropRequest
from bergline.errors import (
    AlreadyExistsError,
    BerglineError,
    CommitUnknownError,
    ConflictError,
    NotFoundError,
    UnavailableError,
    UnsupportedError,
)
from bergline.format.view.json import parse_view_metadata
from bergline.format.view.updates import AddViewVersion, AssertViewUuid, ViewUpdate
from bergline.format.view.view_metadata import ViewMetadata, ViewVersion


class RestViews(RestNamespaces):
    """Views of a REST catalog, over a session; UnsupportedError if the server has none."""

    def load_view(self, name: TableName) -> LoadedView:
        about = _about(name)
        response = self._session.calls.call(LOAD_VIEW, about, names=self._session.table_path(name, "view"))
        return self._loaded_view(name, self._session.calls.parsed(response, LoadViewResult, about))

    def create_view(self, name: TableName, metadata: ViewMetadata) -> LoadedView:
        """Create a view; after a lost response, one with the same version counts as ours."""
        about = _about(name)
        request = CreateViewRequest(
            name=name.name,
            schema=metadata.schema,
            view_version=metadata.current_version,
            properties=metadata.properties,
            location=metadata.location,
        )

        def send() -> LoadedView:
            names = self._session.namespace_path(name.namespace)
            return self._changed_view(name, self._session.calls.change(CREATE_VIEW, about, names=names, body=request))

        def look() -> LoadedView | None:
            now = self._existing_view(name)
            if now is not None and _same(now.metadata.current_version, metadata.current_version):
                return now
            if now is not None or is_table(self._session, name):
                raise name_taken_error(self._session, name, condition="VIEW_ALREADY_EXISTS")
            return None

        try:
            return settle(send, look, may_resend=True, waits=self._waits(metadata.properties))
        except AlreadyExistsError as error:
            raise name_taken_error(self._session, name) from error
        except UnsettledError as error:
            raise _unknown(name, "created", error) from error

    def commit_view(self, change: ViewChange) -> LoadedView:
        """Change a view; the protocol compares only its UUID, so the base is compared right before."""
        base = change.base
        required = tuple(dict.fromkeys((AssertViewUuid(base.metadata.view_uuid), *change.requirements)))
        request = CommitViewRequest[ViewUpdate](change.updates, required, base.name)
        if self.load_view(base.name).metadata_location != base.metadata_location:
            raise ConflictError(f"view `{base.name}` moved on: it is no longer at {base.metadata_location}")
        added = [u.view_version for u in change.updates if isinstance(u, AddViewVersion)]

        def send() -> LoadedView:
            names = self._session.table_path(base.name, "view")
            return self._changed_view(
                base.name, self._session.calls.change(COMMIT_VIEW, _about(base.name), names=names, body=request)
            )

        def look() -> LoadedView | None:
            now = self.load_view(base.name)
            return now if any(_same(known, new) for known in now.metadata.versions for new in added) else None

        try:
            return settle(send, look, may_resend=False, waits=self._waits(base.metadata.properties))
        except UnsettledError as error:
            raise _unknown(base.name, "changed", error) from error

    def rename_view(self, name: TableName, new: TableName) -> None:
        before = self.load_view(name).metadata.view_uuid

        def send() -> None:
            try:
                self._session.calls.change(RENAME_VIEW, _about(name), body=RenameRequest(name, new))
            except AlreadyExistsError as error:
                raise name_taken_error(self._session, new) from error

        def look() -> bool:
            now = self._existing_view(new)
            return now is not None and now.metadata.view_uuid == before and self._existing_view(name) is None

        what, waits = f"view `{name}` was renamed to `{new}`", self._waits()
        happened(send, look, what=what, name=str(name), waits=waits, always_look=True, doubt_refusals=True)

    def drop_view(self, name: TableName) -> None:
        about, before = _about(name), self._uuid(name)

        def send() -> None:
            self._session.calls.change(DROP_VIEW, about, names=self._session.table_path(name, "view"))

        def look() -> bool:
            now = self._existing_view(name)
            return now is None or (before is not None and now.metadata.view_uuid != before)

        happened(
            send,
            look,
            what=f"{about} was dropped",
            name=str(name),
            waits=self._waits(),
            always_look=True,
            doubt_refusals=before is not None,
        )

    def dropped_views(self, most: int | None = None) -> list[DroppedView]:
        """The views in the server's trash; none on a server that keeps none."""
        if not self._session.calls.has(LIST_DROPPED_VIEWS):
            return []
        pages = self._session.pages(LIST_DROPPED_VIEWS, ListDroppedViewsResponse, CallSubject("the trash", ""))
        found = (view for page in pages for view in page.views)
        return [DroppedView(**msgspec.structs.asdict(view)) for view in islice(found, most)]

    def undrop_view(self, name: TableName, to: TableName | None = None) -> LoadedView:
        """Take a view out of the server's trash; after a lost response, one with its metadata file is it."""
        if not self._session.calls.has(UNDROP_VIEW):
            raise UnsupportedError(
                f"cannot bring `{name}` back: the server keeps no dropped views",
                hints=["`bergline serve --drop-retention 7d` does"],
            )
        new, request = to or name, UndropRequest(to)
        locations = {dropped.metadata_location for dropped in self.dropped_views() if dropped.name == name}

        def send() -> LoadedView:
            names = self._session.table_path(name, "view")
            return self._changed_view(
                new, self._session.calls.change(UNDROP_VIEW, _about(new), names=names, body=request)
            )

        def look() -> LoadedView | None:
            now = self._existing_view(new)
            return now if now is not None and now.metadata_location in locations else None

        if self._existing_view(new) is not None or is_table(self._session, new):
            raise name_taken_error(self._session, new)
        try:
            return settle(send, look, may_resend=False, waits=self._waits())
        except AlreadyExistsError as error:
            raise name_taken_error(self._session, new) from error
        except UnsettledError as error:
            raise _unknown(new, "taken out of the trash", error) from error

    def list_views(self, namespace: Namespace) -> list[TableName]:
        """The views in a namespace; none on a server without views."""
        if not self._session.calls.has(LIST_VIEWS):
            self.namespace_properties(namespace)
            return []
        about, names = CallSubject("namespace", ".".join(namespace)), self._session.namespace_path(namespace)
        pages = self._session.pages(LIST_VIEWS, ListTablesResponse, about, names=names)
        return sorted(name for page in pages for name in page.identifiers)

    def _existing_view(self, name: TableName) -> LoadedView | None:
        try:
            return self.load_view(name)
        except NotFoundError:
            return None

    def _uuid(self, name: TableName) -> str | None:
        """The UUID of a view; None if it cannot be read."""
        try:
            return self.load_view(name).metadata.view_uuid
        except (UnavailableError, UnsupportedError):
            raise
        except BerglineError:
            return None

    def _changed_view(self, name: TableName, changed: ParsedResponse) -> LoadedView:
        """The view in the response to a change; ChangeInDoubtError if it cannot be read."""
        try:
            return self._loaded_view(name, changed.content)
        except BerglineError as error:
            raise ChangeInDoubtError(str(error)) from error

    def _loaded_view(self, name: TableName, response: LoadViewResult) -> LoadedView:
        metadata = parse_view_metadata(bytes(response.metadata), f"the server's response for {_about(name)}")
        return LoadedView(name, metadata, response.metadata_location)


def _same(known: ViewVersion, requested: ViewVersion) -> bool:
    """Whether a version is the one that was sent: the server assigns the id, but the timestamp is ours."""
    return (known.timestamp_ms, known.representations) == (requested.timestamp_ms, requested.representations)


def _about(name: TableName) -> CallSubject:
    return CallSubject("view", str(name))


def _unknown(name: TableName, what: str, cause: Exception) -> CommitUnknownError:
    return CommitUnknownError(
        f"cannot find out whether view `{name}` was {what}: {cause}", table=str(name), metadata_location=None
    )
