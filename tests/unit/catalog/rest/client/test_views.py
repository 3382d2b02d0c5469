"""Views whose answers get lost: what is there afterwards decides."""

import json

import pytest

from bergline.catalog.catalog import LoadedView, ViewChange
from bergline.catalog.identifiers import TableName
from bergline.catalog.rest.client.rest_catalog import RestCatalog
from bergline.errors import AlreadyExistsError, CommitUnknownError, ConflictError
from bergline.format.metadata.updates import AddSchema, AssignUuid, SetLocation, SetProperties
from bergline.format.schema.schema import Schema
from bergline.format.types.types import LONG, NestedField
from bergline.format.view.apply import apply_view_updates
from bergline.format.view.json import render_view_metadata
from bergline.format.view.updates import AddViewVersion, SetCurrentViewVersion
from bergline.format.view.view_metadata import SqlRepresentation, ViewMetadata, ViewVersion
from support.servers.scripted_rest_server import NO_ANSWER, Reply, RestScript, refused

NAME, NEW = TableName(("db",), "v"), TableName(("db",), "w")
VIEWS = "/v1/namespaces/db/views"
LOAD, CREATE, COMMIT, DROP = f"GET {VIEWS}/v", f"POST {VIEWS}", f"POST {VIEWS}/v", f"DELETE {VIEWS}/v"
GONE = refused(404, "NoSuchViewException")


def version(number: int) -> ViewVersion:
    return ViewVersion(
        version_id=number,
        timestamp_ms=1000 + number,
        schema_id=0,
        summary={},
        default_namespace=("db",),
        representations=(SqlRepresentation(f"SELECT {number} AS id", "spark"),),
    )


def view(number: int = 1) -> ViewMetadata:
    updates = (
        AssignUuid("12345678-1234-1234-1234-123456789012"),
        SetLocation("file:///lake/v"),
        SetProperties({}),
        AddSchema(Schema((NestedField(1, "id", required=False, type=LONG),), 0)),
        AddViewVersion(version(number)),
        SetCurrentViewVersion(-1),
    )
    return apply_view_updates(None, updates, now_ms=2000)


def shown(metadata: ViewMetadata, number: int = 0) -> Reply:
    location = f"file:///lake/v/metadata/{number}.metadata.json"
    return Reply(body={"metadata-location": location, "metadata": json.loads(render_view_metadata(metadata))})


def changed(base: ViewMetadata) -> tuple[ViewChange, ViewMetadata]:
    updates = (AddViewVersion(version(2)), SetCurrentViewVersion(-1))
    loaded = LoadedView(NAME, base, "file:///lake/v/metadata/0.metadata.json")
    return ViewChange(loaded, (), updates), apply_view_updates(base, updates, now_ms=3000)


def test_new_view_is_known_by_its_version_after_a_lost_answer(server: RestScript, catalog: RestCatalog) -> None:
    server.on(CREATE, NO_ANSWER)
    server.on(LOAD, shown(view()))
    assert catalog.create_view(NAME, view()).name == NAME
    server.on(LOAD, shown(view(7)))
    with pytest.raises(AlreadyExistsError):
        catalog.create_view(NAME, view())
    server.on(LOAD, NO_ANSWER)
    with pytest.raises(CommitUnknownError, match="was created"):
        catalog.create_view(NAME, view())


def test_change_of_a_view_is_known_by_its_version(server: RestScript, catalog: RestCatalog) -> None:
    change, after = changed(view())
    server.on(COMMIT, NO_ANSWER)
    server.on(LOAD, shown(view()), shown(after, 1))
    assert catalog.commit_view(change).metadata.current_version.timestamp_ms == 1002
    server.on(LOAD, shown(view()))
    with pytest.raises(CommitUnknownError, match="was changed"):
        catalog.commit_view(change)
    assert len(server.sent(COMMIT)) == 2


def test_view_that_moved_on_is_a_conflict_before_anything_is_sent(server: RestScript, catalog: RestCatalog) -> None:
    change, after = changed(view())
    server.on(LOAD, shown(after, 1))
    with pytest.raises(ConflictError, match="moved on"):
        catalog.commit_view(change)
    assert not server.sent(COMMIT)


def test_refused_change_is_a_conflict(server: RestScript, catalog: RestCatalog) -> None:
    change, _ = changed(view())
    server.on(LOAD, shown(view()))
    server.on(COMMIT, refused(409, "CommitFailedException", "another uuid"))
    with pytest.raises(ConflictError, match="another uuid"):
        catalog.commit_view(change)
    assert server.sent(COMMIT)[0].content["requirements"][0]["type"] == "assert-view-uuid"


def test_lost_answers_of_drops_and_renames_are_settled_by_looking(server: RestScript, catalog: RestCatalog) -> None:
    server.on(DROP, NO_ANSWER)
    server.on(LOAD, GONE)
    catalog.drop_view(NAME)
    server.on(LOAD, shown(view()))
    with pytest.raises(CommitUnknownError, match="was dropped"):
        catalog.drop_view(NAME)
    server.on("POST /v1/views/rename", NO_ANSWER)
    server.on(LOAD, shown(view()), GONE)
    server.on(f"GET {VIEWS}/w", shown(view()))
    catalog.rename_view(NAME, NEW)
    server.on(LOAD, shown(view()))
    server.on(f"GET {VIEWS}/w", GONE)
    with pytest.raises(CommitUnknownError, match="was renamed"):
        catalog.rename_view(NAME, NEW)


@pytest.mark.parametrize("answer", [Reply(200, b"<html>"), Reply(204), Reply(302), Reply(530), Reply(404, b"<html>")])
def test_view_is_dropped_only_when_it_is_gone(server: RestScript, catalog: RestCatalog, answer: Reply) -> None:
    server.on(DROP, answer)
    server.on(LOAD, shown(view()), GONE)
    catalog.drop_view(NAME)
    server.on(LOAD, shown(view()))
    with pytest.raises(CommitUnknownError, match="was dropped"):
        catalog.drop_view(NAME)


@pytest.mark.parametrize("answer", [Reply(200, b"<html>"), Reply(200, {"metadata-location": "x", "metadata": {}})])
def test_answer_that_is_no_view_is_settled_by_looking(server: RestScript, catalog: RestCatalog, answer: Reply) -> None:
    server.on(CREATE, answer)
    server.on(LOAD, shown(view()))
    assert catalog.create_view(NAME, view()).name == NAME
    change, after = changed(view())
    server.on(COMMIT, answer)
    server.on(LOAD, shown(view()), shown(after, 1))
    assert catalog.commit_view(change).metadata.current_version.timestamp_ms == 1002
