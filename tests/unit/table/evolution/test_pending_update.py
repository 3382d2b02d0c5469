"""Updates in a `with` block: committed together, or not at all."""

import pytest

from bergline import Lake, Table
from bergline.errors import ConflictError, InvalidInputError
from bergline.table.evolution.pending_update import check_same_column, conflict_if_refused, is_settled


def test_block_that_raises_commits_nothing(orders: Table) -> None:
    before = orders.metadata_location
    with pytest.raises(KeyError), orders.update_schema() as schema:
        raise KeyError(schema.add_column("a", "long"))
    with orders.update_schema():
        pass
    assert orders.refresh().metadata_location == before


def test_change_outside_of_a_block_is_refused(orders: Table) -> None:
    with pytest.raises(InvalidInputError, match="inside a `with` block of the SpecUpdate, found one outside"):
        orders.update_spec().add_field("region")


def test_what_is_refused_on_another_base_is_a_conflict_that_names_it(lake: Lake, orders: Table) -> None:
    loaded = orders.metadata
    with lake.load_table("db.orders").update_schema() as schema:
        schema.add_column("a", "long")
    now = orders.refresh().metadata
    with pytest.raises(ConflictError, match="too late; its schema changed first"), conflict_if_refused(loaded, now):
        raise InvalidInputError("too late")
    with pytest.raises(KeyError), conflict_if_refused(loaded, now):
        raise KeyError


def test_columns_are_the_same_by_their_ids(lake: Lake, orders: Table) -> None:
    loaded = orders.metadata
    with lake.load_table("db.orders").update_schema() as schema:
        schema.rename_column("region", "area").drop_column("id")
    now = orders.refresh().metadata
    region = loaded.schema.find("region").id
    assert is_settled(region, loaded, now)
    assert not is_settled(99, loaded, now)
    for path, message in (("region", "was renamed to `area`"), ("id", "was dropped")):
        with pytest.raises(ConflictError, match=message):
            check_same_column(path, loaded.schema, now.schema, loaded, now)
    check_same_column("region", loaded.schema, loaded.schema, loaded, loaded)
