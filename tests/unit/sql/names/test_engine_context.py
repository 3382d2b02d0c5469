"""Lakes without an engine: every name is a lake's or nobody's."""

import pytest

from bergline import Lake, Table
from bergline.errors import InvalidInputError, NotFoundError, UnsupportedError
from bergline.expressions.predicate import Comparison
from bergline.sql.names.engine_context import NoEngine
from bergline.sql.names.resolve import Current, Lakes


def test_nothing_comes_before_the_names_of_lakes(lake: Lake, orders: Table) -> None:
    engine = NoEngine()
    assert (engine.user, engine.time_zone) == (None, "UTC")
    assert (engine.namespaces(), engine.catalogs(), engine.temporary_views()) == ([], [], [])
    lakes = Lakes({"lake": lake}, "lake", Current(None, ("db",)), engine)
    assert lakes.place(("orders",)) == (lake, ("db", "orders"))
    assert lakes.place_new_namespace(("spark_catalog",)) == (lake, ("spark_catalog",))


def test_time_zone_is_the_one_that_was_given() -> None:
    assert NoEngine("Asia/Kolkata").time_zone == "Asia/Kolkata"


def test_there_are_no_temporary_views(orders: Table) -> None:
    with pytest.raises(UnsupportedError, match="cannot create the temporary view `v` without Spark"):
        NoEngine().create_view("v", orders.changes(None))


def test_rows_are_worked_on_in_this_process(orders: Table) -> None:
    engine = NoEngine()
    assert engine.row_engine() is None
    found = engine.predicate("id > 1", orders.schema)
    assert isinstance(found, Comparison)
    assert found.column == "id"
    with pytest.raises(NotFoundError, match="nope"):
        engine.predicate("nope > 1", orders.schema)
    with pytest.raises(InvalidInputError):
        engine.predicate("id >", orders.schema)
