"""Schemas at refs and what changed."""

import pytest

from bergline import Table
from bergline.errors import NotFoundError
from bergline.reports.schemas import schema_report
from support.fixtures.rows import order_rows


@pytest.fixture
def evolved(orders: Table) -> Table:
    """Orders with a tag before a column was renamed and one added."""
    orders.append(order_rows(1))
    orders.refs.create_tag("v1")
    with orders.update_schema() as update:
        update.rename_column("amount", "price").add_column("note", "string", doc="<b>")
    return orders.append(order_rows(2).rename_columns(["id", "price", "region"]).append_column("note", [["x"]]))


def test_a_ref_has_its_schema_and_what_changed_since_another(evolved: Table) -> None:
    report = schema_report(evolved.metadata, "main", "v1")
    assert [(c.name, c.type, c.required, c.doc) for c in report.columns] == [
        ("id", "long", True, None),
        ("price", "double", False, None),
        ("region", "string", False, None),
        ("note", "string", False, "<b>"),
    ]
    assert report.changes == ("renamed `amount` to `price`", "added `note` string")
    assert [c.name for c in schema_report(evolved.metadata, "v1").columns] == ["id", "amount", "region"]


def test_every_schema_of_the_table_is_listed_newest_first(evolved: Table) -> None:
    newest, first = schema_report(evolved.metadata).versions
    assert (newest.is_current, newest.columns, newest.changes) == (
        True,
        4,
        ("renamed `amount` to `price`", "added `note` string"),
    )
    assert (first.is_current, first.changes) == (False, ())
    assert first.first_snapshot_id == evolved.refs["v1"].snapshot_id


def test_a_snapshot_is_chosen_by_its_id(evolved: Table) -> None:
    chosen = str(evolved.refs["v1"].snapshot_id)
    assert [c.name for c in schema_report(evolved.metadata, chosen).columns] == ["id", "amount", "region"]
    with pytest.raises(NotFoundError, match="no branch or tag `12`"):
        schema_report(evolved.metadata, "12")


def test_nested_fields_stand_below_what_they_are_in(orders: Table) -> None:
    with orders.update_schema() as update:
        update.add_column("place", "struct<city: string, zip: list<int>>")
    nested = [(c.name, c.depth) for c in schema_report(orders.metadata).columns[3:]]
    assert nested == [("place", 0), ("place.city", 1), ("place.zip", 1), ("place.zip.element", 2)]
