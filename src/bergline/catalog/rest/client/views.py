"""Views of a REST catalog."""

from itertools import islice

import msgspec

from bergline.catalog.catalog import DroppedView, LoadedView, ViewChange
from bergline.catalog.identifiers import Namespace, TableName
from bergline.catalog.rest.client.calls import ParsedResponse
from bergline.catalog.rest.client.error_responses import CallSubject
from bergline.catalog.rest.client.name_conflicts import is_table, name_taken_error
from bergline.catalog.rest.client.relations import RelationEndpoints, RestRelations
from bergline.catalog.rest.client.session import RestSession
from bergline.catalog.rest.client.settle import UnsettledError, settle
from bergline.catalog.rest.protocol.bodies import (
    CommitViewRequest,
    CreateViewRequest,
    LoadViewResult,
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
from bergline.catalog.rest.protocol.trash import ListDroppedViewsResponse
from bergline.errors import AlreadyExistsError, ConflictError
from bergline.format.view.json import parse_view_metadata
from bergline.format.view.updates import AddViewVersion, AssertViewUuid, ViewUpdate
from bergline.format.view.view_metadata import ViewMetadata, ViewVersion

_ENDPOINTS = RelationEndpoints("view", LIST_VIEWS, RENAME_VIEW, DROP_VIEW, UNDROP_VIEW)


class RestViews(RestRelations[LoadedView]):
    """Views of a REST catalog, over a session; UnsupportedError if the server has none."""

    def __init__(self, session: RestSession) -> None:
        super().__init__(session, _ENDPOINTS)

    def load(self, name: TableName) -> LoadedView:
        about = self.about(name)
        response = self._session.calls.call(LOAD_VIEW, about, names=self._session.table_path(name, "view"))
        return self.parsed(name, ParsedResponse(response, self._session.calls.parsed(response, LoadViewResult, about)))

    def create(self, name: TableName, metadata: ViewMetadata) -> LoadedView:
        """Create a view; after a lost response, one with the same version counts as ours."""
        about = self.about(name)
        request = CreateViewRequest(
            name=name.name,
            schema=metadata.schema,
            view_version=metadata.current_version,
            properties=metadata.properties,
            location=metadata.location,
        )

        def send() -> LoadedView:
            names = self._session.namespace_path(name.namespace)
            return self.after_change(name, self._session.calls.change(CREATE_VIEW, about, names=names, body=request))

        def look() -> LoadedView | None:
            now = self.existing(name)
            if now is not None and _same(now.metadata.current_version, metadata.current_version):
                return now
            if now is not None or is_table(self._session, name):
                raise name_taken_error(self._session, name, condition="VIEW_ALREADY_EXISTS")
            return None

        try:
            return settle(send, look, may_resend=True, waits=self._session.waits(metadata.properties))
        except AlreadyExistsError as error:
            raise name_taken_error(self._session, name) from error
        except UnsettledError as error:
            raise self.unknown(name, "created", error) from error

    def commit(self, change: ViewChange) -> LoadedView:
        """Change a view; the protocol compares only its UUID, so the base is compared right before."""
        base = change.base
        required = tuple(dict.fromkeys((AssertViewUuid(base.metadata.view_uuid), *change.requirements)))
        request = CommitViewRequest[ViewUpdate](change.updates, required, base.name)
        if self.load(base.name).metadata_location != base.metadata_location:
            raise ConflictError(f"view `{base.name}` moved on: it is no longer at {base.metadata_location}")
        added = [u.view_version for u in change.updates if isinstance(u, AddViewVersion)]

        def send() -> LoadedView:
            names = self._session.table_path(base.name, "view")
            return self.after_change(
                base.name, self._session.calls.change(COMMIT_VIEW, self.about(base.name), names=names, body=request)
            )

        def look() -> LoadedView | None:
            now = self.load(base.name)
            return now if any(_same(known, new) for known in now.metadata.versions for new in added) else None

        try:
            return settle(send, look, may_resend=False, waits=self._session.waits(base.metadata.properties))
        except UnsettledError as error:
            raise self.unknown(base.name, "changed", error) from error

    def dropped(self, most: int | None = None) -> list[DroppedView]:
        """The views in the server's trash; none on a server that keeps none."""
        if not self._session.calls.has(LIST_DROPPED_VIEWS):
            return []
        pages = self._session.pages(LIST_DROPPED_VIEWS, ListDroppedViewsResponse, CallSubject("the trash", ""))
        found = (view for page in pages for view in page.views)
        return [DroppedView(**msgspec.structs.asdict(view)) for view in islice(found, most)]

    def names_in(self, namespace: Namespace) -> list[TableName]:
        """The views in a namespace; none on a server without views."""
        return super().names_in(namespace) if self._session.calls.has(LIST_VIEWS) else []

    def parsed(self, name: TableName, response: ParsedResponse) -> LoadedView:
        content: LoadViewResult = response.content
        metadata = parse_view_metadata(bytes(content.metadata), f"the server's response for {self.about(name)}")
        return LoadedView(name, metadata, content.metadata_location)

    def _is_same(self, now: LoadedView, before: LoadedView) -> bool:
        return now.metadata.view_uuid == before.metadata.view_uuid

    def _line(self, loaded: LoadedView) -> set[str]:
        return {loaded.metadata_location}

    def _is_taken(self, name: TableName) -> bool:
        return super()._is_taken(name) or is_table(self._session, name)


def _same(known: ViewVersion, requested: ViewVersion) -> bool:
    """Whether a version is the one that was sent: the server assigns the id, but the timestamp is ours."""
    return (known.timestamp_ms, known.representations) == (requested.timestamp_ms, requested.representations)
