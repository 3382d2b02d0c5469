import pytest

from bergline import Table
from bergline.console.page import Source
from bergline.console.pages.snapshot import snapshot_page
from bergline.errors import InvalidInputError, NotFoundError


def test_snapshot_has_its_summary_its_neighbours_and_its_refs(source: Source, story: Table) -> None:
    first = story.refs["v1"].snapshot_id
    found = snapshot_page(source, {"name": "db.orders", "id": str(first)}).values
    assert (found["id"], found["parent"], found["operation"]) == (str(first), None, "append")
    assert found["refs"] == [{"name": "v1", "kind": "tag"}]
    assert found["branches"] == ["audit", "fork", "main"]
    assert found["may_roll_back"] == ["audit", "fork", "main"]
    assert len(found["children"]) == 2
    head = snapshot_page(source, {"name": "db.orders", "id": str(story.refs["main"].snapshot_id)}).values
    assert (head["branches"], head["may_roll_back"]) == (["audit", "main"], ["audit"])
    assert found["summary"]["added-records"] == "2"


@pytest.mark.parametrize("text", ["", "x", "-1", "9" * 30])
def test_id_that_is_none_is_refused(source: Source, story: Table, text: str) -> None:
    with pytest.raises(InvalidInputError, match="expected the id of a snapshot"):
        snapshot_page(source, {"name": "db.orders", "id": text})


def test_missing_snapshot_is_not_found(source: Source, story: Table) -> None:
    with pytest.raises(NotFoundError, match="snapshot"):
        snapshot_page(source, {"name": "db.orders", "id": "7"})
