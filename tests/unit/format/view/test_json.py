"""View metadata as JSON."""

import json
from typing import Any

import pytest

from bergline.errors import FormatError, UnsupportedError
from bergline.format.view.json import parse_view_metadata, render_view_metadata
from bergline.format.view.view_metadata import UnknownRepresentation, ViewMetadata


def parse(document: Any) -> ViewMetadata:
    return parse_view_metadata(json.dumps(document).encode(), "view.json")


def test_document_comes_back_as_it_was_with_keys_in_order(view_document: dict[str, Any]) -> None:
    rendered = json.loads(render_view_metadata(parse(view_document)))
    assert rendered == view_document
    assert list(rendered) == list(view_document)
    assert list(rendered["versions"][0]) == list(view_document["versions"][0])


def test_empty_properties_are_left_out(view_document: dict[str, Any]) -> None:
    del view_document["properties"]
    assert json.loads(render_view_metadata(parse(view_document | {"properties": {}}))) == view_document


def test_type_of_a_representation_is_read_in_any_case(view_document: dict[str, Any]) -> None:
    view_document["versions"][0]["representations"][0]["type"] = "SQL"
    rendered = json.loads(render_view_metadata(parse(view_document)))
    assert rendered["versions"][0]["representations"][0]["type"] == "sql"


def test_unknown_representations_are_kept(view_document: dict[str, Any]) -> None:
    plan = {"type": "substrait", "plan": {"a": [1]}}
    view_document["versions"][0]["representations"].append(plan)
    view = parse(view_document)
    assert view.version(1).representations[-1] == UnknownRepresentation(plan)
    assert json.loads(render_view_metadata(view)) == view_document
    assert len({*view.version(1).representations, *view.version(1).representations}) == 2


def test_unknown_keys_are_ignored_and_schema_without_id_is_0(view_document: dict[str, Any]) -> None:
    del view_document["schemas"][0]["schema-id"]
    assert parse(view_document | {"from-the-future": [1]}).schemas[0].schema_id == 0


@pytest.mark.parametrize("version", [0, 2, -1])
def test_other_format_versions_are_not_supported(view_document: dict[str, Any], version: int) -> None:
    with pytest.raises(UnsupportedError, match=rf"view format version 1, found {version} in view\.json"):
        parse(view_document | {"format-version": version})
    with pytest.raises(UnsupportedError, match=rf"found {version} in view\.json"):
        parse({"format-version": version})


@pytest.mark.parametrize("key", ["view-uuid", "location", "schemas", "current-version-id", "versions", "version-log"])
def test_missing_required_key_is_named(view_document: dict[str, Any], key: str) -> None:
    del view_document[key]
    with pytest.raises(FormatError, match=rf"`{key}` at \$ in view\.json"):
        parse(view_document)


BROKEN: dict[str, tuple[list[Any], Any, str]] = {
    "unknown version": (["current-version-id"], 7, r"one of \[1, 2\], found 7 in view"),
    "two versions of one id": (["versions", 0, "version-id"], 2, "each version-id once"),
    "two schemas of one id": (["schemas", 1, "schema-id"], 0, "each schema-id once"),
    "unknown schema": (["versions", 1, "schema-id"], 8, r"schema of \[0, 1\] for the current version, found 8"),
    "null properties": (["properties"], None, r"at \$\.properties in view"),
    "text for an id": (["versions", 0, "version-id"], "1", r"at \$\.versions\[0\]\.version-id in view"),
    "null summary": (["versions", 0, "summary"], None, r"\$\.versions\[0\]\.summary in view"),
    "number in a namespace": (["versions", 0, "default-namespace"], [1], r"\$\.versions\[0\]\.default-namespace\[0\]"),
    "no type": (["versions", 0, "representations", 0], {}, r"text for `type`, found None at \$\.versions\[0\]\.repr"),
    "no dialect": (["versions", 0, "representations", 0], {"type": "sql", "sql": "x"}, "text for `dialect`"),
    "text for a representation": (["versions", 0, "representations", 0], "x", r"representations\[0\] in view"),
}


@pytest.mark.parametrize(("path", "value", "message"), BROKEN.values(), ids=list(BROKEN))
def test_broken_view_is_refused_at_its_place(
    view_document: dict[str, Any], path: list[Any], value: Any, message: str
) -> None:
    target: Any = view_document
    for step in path[:-1]:
        target = target[step]
    target[path[-1]] = value
    with pytest.raises(FormatError, match=message):
        parse(view_document)
