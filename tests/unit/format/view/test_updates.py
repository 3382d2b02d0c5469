"""Updates and requirements of views."""

import pytest

from bergline.errors import AlreadyExistsError, ConflictError, FormatError
from bergline.format.metadata.requirements import AssertCreate
from bergline.format.metadata.updates import SetProperties
from bergline.format.view.updates import (
    AssertViewUuid,
    SetCurrentViewVersion,
    check_view_requirements,
    parse_view_updates,
)
from bergline.format.view.view_metadata import ViewMetadata


def test_requirements_hold_or_conflict(view: ViewMetadata) -> None:
    check_view_requirements(view, (AssertViewUuid(view.view_uuid.upper()),), "db.v")
    check_view_requirements(None, (AssertCreate(),), "db.v")
    with pytest.raises(ConflictError, match=r"view `db\.v` with uuid other, found fa6506c3"):
        check_view_requirements(view, (AssertViewUuid("other"),), "db.v")
    with pytest.raises(ConflictError, match="found None"):
        check_view_requirements(None, (AssertViewUuid("other"),), "db.v")
    with pytest.raises(AlreadyExistsError, match=r"view `db\.v` exists already"):
        check_view_requirements(view, (AssertCreate(),), "db.v")


def test_updates_are_parsed_from_the_words_of_the_rest_protocol() -> None:
    found = parse_view_updates(
        b'[{"action": "set-properties", "updates": {"a": "1"}},'
        b' {"action": "set-current-view-version", "view-version-id": -1}]',
        "the request",
    )
    assert found == (SetProperties({"a": "1"}), SetCurrentViewVersion(-1))
    with pytest.raises(FormatError, match="in the request"):
        parse_view_updates(b'[{"action": "set-current-schema", "schema-id": 1}]', "the request")
