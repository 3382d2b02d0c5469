"""The page of schemas."""

import pytest

from bergline import Lake, Table
from bergline.console.pages.schema import schema_page
from bergline.errors import NotFoundError
from support.fixtures.console_pages import HOSTILE, show
from support.fixtures.rows import order_rows


def test_columns_changes_and_versions_are_shown(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1))
    orders.refs.create_tag("v1")
    with orders.update_schema() as update:
        update.add_column(HOSTILE, "string", doc=HOSTILE).rename_column("amount", "price")
    shown = show(schema_page, lake, {"name": "db.orders", "against": "v1"})
    assert [c["name"] for c in shown.values["columns"]] == ["id", "price", "region", HOSTILE]
    assert shown.values["changes"] == ["renamed `amount` to `price`", f"added `{HOSTILE}` string"]
    assert "renamed `amount` to `price`" in shown.text
    assert [v["is_current"] for v in shown.values["versions"]] == [True, False]
    older = show(schema_page, lake, {"name": "db.orders", "ref": "v1"})
    assert [c["name"] for c in older.values["columns"]] == ["id", "amount", "region"]


def test_a_ref_that_does_not_exist_is_an_error(lake: Lake, orders: Table) -> None:
    with pytest.raises(NotFoundError, match="no branch or tag `nope`"):
        show(schema_page, lake, {"name": "db.orders", "ref": "nope"})
