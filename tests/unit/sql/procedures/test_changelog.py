"""`create_changelog_view`: what it asks of an engine, and what is refused before."""

import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.errors import BerglineError, InvalidInputError, NotFoundError, UnsupportedError
from bergline.sql.analyze import analyze
from bergline.sql.names.engine_context import NoEngine
from bergline.sql.names.resolve import Lakes
from bergline.sql.statements.registry import run_statement
from bergline.sql.statements.statement import LakeStatement
from bergline.sql.text.tokens import SqlText
from bergline.table.references.changed_rows import Changelog
from support.fixtures.rows import order_rows


class Views(NoEngine):
    """Keeps the views that are created."""

    def __init__(self) -> None:
        super().__init__()
        self.created: dict[str, pa.Table] = {}

    def create_view(self, name: str, changes: Changelog) -> None:
        """Keep the rows of a view."""
        self.created[name] = changes.to_arrow()


def call(lake: Lake, arguments: str, engine: NoEngine) -> pa.Table:
    statement = analyze(SqlText(f"CALL system.create_changelog_view({arguments})"))
    assert isinstance(statement, LakeStatement)
    found = run_statement(statement, Lakes({"lake": lake}, "lake", engine=engine))
    assert found is not None
    return found


@pytest.fixture
def log(orders: Table) -> Table:
    """Three commits, the second of which is tagged."""
    orders.append(order_rows(1)).append(order_rows(2))
    orders.refs.create_tag("second")
    return orders.overwrite(order_rows(2).set_column(1, "amount", pa.array([7.0])), "id = 2")


def words(rows: pa.Table) -> list[str]:
    return sorted(rows.column("_change_type").to_pylist())


def test_the_name_of_the_view_is_the_result(lake: Lake, log: Table) -> None:
    views = Views()
    found = call(lake, "'db.orders'", views)
    assert found.schema == pa.schema([pa.field("changelog_view", pa.string(), nullable=False)])
    assert found.to_pylist() == [{"changelog_view": "`orders_changes`"}]
    assert words(views.created["`orders_changes`"]) == ["DELETE", "INSERT", "INSERT", "INSERT"]
    assert call(lake, "'db.orders', 'mine'", views).to_pylist() == [{"changelog_view": "mine"}]


def test_arguments_say_which_changes_and_how_they_are_matched(lake: Lake, log: Table) -> None:
    views = Views()
    call(lake, "'db.orders', 'net', net_changes => true", views)
    assert words(views.created["net"]) == ["INSERT", "INSERT"]
    call(lake, "'db.orders', 'images', map('start-tag', 'second'), identifier_columns => array('id')", views)
    assert words(views.created["images"]) == ["UPDATE_AFTER", "UPDATE_BEFORE"]
    call(lake, "'db.orders', 'plain', map('start-tag', 'second'), false, array('id')", views)
    assert words(views.created["plain"]) == ["DELETE", "INSERT"]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ("'db.orders'", UnsupportedError, "cannot create the temporary view .* without Spark"),
        ("'db.orders', compute_updates => true", InvalidInputError, "expected identifier columns"),
        ("'db.orders', identifier_columns => array('idd')", NotFoundError, "no column `idd`"),
        ("'db.orders', options => map('start', '1')", UnsupportedError, "expected one of the options"),
        ("'db.orders', options => map('start-snapshot-id', 'x')", InvalidInputError, "expected a whole number"),
        ("'db.orders', options => map('branch', 'nope')", NotFoundError, "no branch or tag `nope`"),
        ("'db.orders', net_changes => 1", InvalidInputError, "expected `boolean` for argument `net_changes`"),
    ],
)
def test_what_is_refused(lake: Lake, log: Table, arguments: str, error: type[BerglineError], message: str) -> None:
    with pytest.raises(error, match=message):
        call(lake, arguments, NoEngine())
