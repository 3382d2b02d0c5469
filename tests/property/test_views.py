"""Views survive their files, and updates keep them consistent."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from bergline.errors import BerglineError, FormatError, UnsupportedError
from bergline.format.metadata.updates import AddSchema, SetProperties
from bergline.format.schema.schema import Schema
from bergline.format.types.types import LONG, NestedField
from bergline.format.view.apply import apply_view_updates
from bergline.format.view.json import parse_view_metadata, render_view_metadata
from bergline.format.view.updates import AddViewVersion, SetCurrentViewVersion, ViewUpdate
from bergline.format.view.view_metadata import (
    SqlRepresentation,
    UnknownRepresentation,
    ViewLogEntry,
    ViewMetadata,
    ViewVersion,
    check_view_invariants,
)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
dialects = st.sampled_from(["spark", "Spark", "trino", "duckdb"])
unknown = st.builds(lambda kind, text: UnknownRepresentation({"type": kind, "x": text}), st.just("plan"), texts)
representations = st.builds(SqlRepresentation, texts, dialects) | unknown


@st.composite
def versions(draw: Any, version_id: int, schema_ids: list[int]) -> ViewVersion:
    return ViewVersion(
        version_id=version_id,
        timestamp_ms=draw(st.integers(0, 2**50)),
        schema_id=draw(st.sampled_from(schema_ids)),
        summary=draw(st.dictionaries(texts, texts, max_size=2)),
        default_catalog=draw(st.none() | texts),
        default_namespace=tuple(draw(st.lists(texts, max_size=2))),
        representations=tuple(draw(st.lists(representations, max_size=3))),
    )


@st.composite
def views(draw: Any) -> ViewMetadata:
    ids = draw(st.lists(st.integers(-5, 2**31 - 1), min_size=1, max_size=4, unique=True))
    return ViewMetadata(
        view_uuid=draw(texts),
        format_version=1,
        location=draw(texts),
        properties=draw(st.dictionaries(texts, texts, max_size=2)),
        schemas=tuple(Schema((NestedField(1, f"c{n}", False, LONG),), schema_id=n) for n in (0, 1)),
        current_version_id=draw(st.sampled_from(ids)),
        versions=tuple(draw(versions(i, [0, 1])) for i in ids),
        version_log=tuple(ViewLogEntry(draw(st.integers(0, 2**50)), draw(st.sampled_from(ids))) for _ in range(3)),
    )


@settings(max_examples=60)
@given(views())
def test_view_survives_its_file(view: ViewMetadata) -> None:
    data = render_view_metadata(view)
    assert parse_view_metadata(data, "x") == view
    assert render_view_metadata(parse_view_metadata(data, "x")) == data


@settings(max_examples=60)
@given(views(), st.data())
def test_damaged_file_gives_a_view_or_our_error(view: ViewMetadata, data: st.DataObject) -> None:
    text = bytearray(render_view_metadata(view))
    for _ in range(data.draw(st.integers(1, 3))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    outcome: ViewMetadata | BerglineError
    try:
        outcome = parse_view_metadata(bytes(text), "damaged.json")
    except (FormatError, UnsupportedError) as error:
        outcome = error
    if isinstance(outcome, ViewMetadata):
        assert check_view_invariants(outcome) is outcome
    else:
        assert str(outcome).endswith("in damaged.json")


history = st.sampled_from(["0", "1", "2", "many", "-1"])
updates: st.SearchStrategy[ViewUpdate] = st.one_of(
    st.builds(AddViewVersion, st.integers(-1, 9).flatmap(lambda i: versions(i, [-1, 0, 1, 7]))),
    st.builds(SetCurrentViewVersion, st.integers(-1, 5)),
    st.builds(lambda n: AddSchema(Schema((NestedField(1, f"c{n}", False, LONG),))), st.integers(0, 3)),
    st.builds(lambda n: SetProperties({"version.history.num-entries": n}), history),
    st.just(SetProperties({"replace.drop-dialect.allowed": "true"})),
)


@settings(max_examples=80)
@given(views(), st.lists(updates, max_size=5))
def test_updates_give_a_consistent_view_or_our_error(view: ViewMetadata, changes: list[ViewUpdate]) -> None:
    try:
        after = apply_view_updates(view, changes, now_ms=5)
    except BerglineError:
        return
    assert parse_view_metadata(render_view_metadata(after), "x") == after
    assert after.view_uuid == view.view_uuid
    assert {v.version_id for v in after.versions} >= {after.current_version_id}
