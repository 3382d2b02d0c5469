"""Answers of loads as bytes."""

import pytest

from bergline.errors import InvalidInputError
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.server.cache.load_responses import EVERYTHING, LoadResponses, ShownState, entity_tag, matches, shown_state
from bergline.server.context.context import ServerContext
from support.servers.asgi_client import AsgiClient, set_property


@pytest.fixture
def metadata(client: AsgiClient, context: ServerContext) -> TableMetadata:
    client.namespace("db")
    return context.catalog.tables.metadata_at(client.table().json["metadata-location"])


def test_metadata_is_loaded_and_rendered_once(metadata: TableMetadata) -> None:
    loads, asked = LoadResponses({}), []

    def load() -> TableMetadata:
        asked.append(1)
        return metadata

    answers = {loads.table("a", EVERYTHING, load).body for _ in range(3)}
    assert len(answers) == len(asked) == 1
    loads.table("a", ShownState("refs"), load)
    assert len(asked) == 2
    assert (loads.responses.hits, loads.responses.misses) == (2, 2)
    assert loads.cached_table("b", EVERYTHING) is None


def test_memory_is_bounded_and_the_latest_stay(metadata: TableMetadata) -> None:
    size = len(LoadResponses({}).render_table("00", metadata))
    loads = LoadResponses({}, max_bytes=3 * size)
    for number in range(10):
        loads.table(f"{number:02}", EVERYTHING, lambda: metadata)
    kept = [number for number in range(10) if loads.cached_table(f"{number:02}", EVERYTHING)]
    assert kept == [7, 8, 9]
    tiny = LoadResponses({}, max_bytes=1)
    assert tiny.table("a", EVERYTHING, lambda: metadata)
    assert tiny.cached_table("a", EVERYTHING) is None


def test_server_loads_a_table_again_only_when_it_changed(
    client: AsgiClient, context: ServerContext, metadata: TableMetadata, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "/v1/namespaces/db/tables/orders"
    first = client("GET", path).json
    with monkeypatch.context() as patch:
        patch.setattr(context.catalog.tables, "metadata_at", lambda _: 1 / 0)
        assert client("GET", path).json == first
    changed = client.commit(set_property("a", "b")).json
    assert client("GET", path).json == changed != first


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, False),
        ("{tag}", True),
        ("{strong}", True),
        ("{bare}", True),
        ('"x", {tag}', True),
        ("*", True),
        ('"x"', False),
        ("", False),
    ],
)
def test_tags_match_as_http_says(header: str | None, expected: bool) -> None:
    tag = entity_tag("file:///a")
    strong = tag.removeprefix("W/")
    assert strong != tag
    assert matches(tag, header and header.format(tag=tag, strong=strong, bare=strong.strip('"'))) is expected


def test_tags_name_file_and_snapshots() -> None:
    assert len({entity_tag("a"), entity_tag("a", ShownState("refs")), entity_tag("b")}) == 3
    assert shown_state(None, None) == shown_state("ALL", None) == EVERYTHING
    with pytest.raises(InvalidInputError):
        shown_state("none", None)
