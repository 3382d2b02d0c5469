"""Views: their metadata as a value and as JSON."""

import json
from typing import Any

import msgspec
import pytest

from bergline.errors import FormatError, NotFoundError
from bergline.format.view.json import parse_view_metadata, render_view_metadata
from bergline.format.view.view_metadata import SqlRepresentation, ViewMetadata


def parse(document: Any) -> ViewMetadata:
    return parse_view_metadata(json.dumps(document).encode(), "view.json")


def test_current_version_and_its_schema(view_document: dict[str, Any]) -> None:
    view = parse(view_document)
    assert view.current_version.representations == (
        SqlRepresentation("SELECT 2 AS n", "spark"),
        SqlRepresentation("SELECT 2 n", "Trino"),
    )
    assert view.current_version.dialects == {"spark", "trino"}
    assert [f.name for f in view.schema.fields] == ["n"]
    assert (view.version(1).default_catalog, view.version(2).default_catalog) == (None, "prod")
    with pytest.raises(NotFoundError, match="no version with id 9"):
        view.version(9)


def test_inconsistent_view_is_never_written(view_document: dict[str, Any]) -> None:
    with pytest.raises(FormatError, match="found 9"):
        render_view_metadata(msgspec.structs.replace(parse(view_document), current_version_id=9))
