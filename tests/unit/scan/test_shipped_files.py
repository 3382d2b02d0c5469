"""Planned files as bytes."""

import msgspec
import polars as pl
import pytest

from bergline import Lake
from bergline.format.manifest.columns import PHYSICAL_SCHEMA
from bergline.scan.manifest_cache import forget_files
from bergline.scan.planned_files import PlannedFiles
from bergline.scan.shipped_files import ship, unship
from support.fixtures.rows import ORDERS, order_rows


@pytest.fixture
def files(lake: Lake) -> PlannedFiles:
    """Files of two specs, one of them with a delete."""
    table = lake.create_table("db.t", ORDERS, properties={"write.delete.mode": "merge-on-read"})
    table.append(order_rows(1, 2)).append(order_rows(3))
    with table.update_spec() as spec:
        spec.add_field("region")
    table.append(order_rows(4)).delete("id = 2")
    forget_files()
    found = table.scan().plan().files
    assert isinstance(found, PlannedFiles)
    assert len(found.groups) == 2
    assert any(planned.deletes for planned in found)
    return found


def halves(files: PlannedFiles) -> list[PlannedFiles]:
    """Every second file of each spec in one half."""
    masks = (
        [group.only(pl.Series([n % 2 == half for n in range(group.frame.height)])) for group in files.groups]
        for half in (0, 1)
    )
    return [PlannedFiles(groups) for groups in masks]


def test_files_come_back_as_they_were_sent(files: PlannedFiles) -> None:
    assert unship([ship(files)]) == files
    assert all(planned.file.physical_schema is not None for planned in unship([ship(files)]))


def test_parts_are_put_together_in_their_order_within_a_spec(files: PlannedFiles) -> None:
    parts = halves(files)
    together = unship(map(ship, parts))
    assert sorted(together, key=str) == sorted(files, key=str)
    first = [planned for part in parts for planned in part if planned.file.spec_id == 0]
    assert [planned for planned in together if planned.file.spec_id == 0] == first


def test_nothing_comes_back_as_nothing() -> None:
    assert len(unship([])) == 0
    assert len(unship([ship(PlannedFiles([]))])) == 0


def test_physical_schemas_get_the_numbers_that_they_have_here(
    files: PlannedFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    schemas = {n: p.file.physical_schema for n, p in enumerate(files)}
    (theirs,) = {schema for schema in schemas.values() if schema is not None}
    away = PlannedFiles(
        [
            msgspec.structs.replace(g, frame=g.frame.with_columns(pl.lit(987_654, pl.Int64).alias(PHYSICAL_SCHEMA)))
            for g in files.groups
        ]
    )
    monkeypatch.setattr("bergline.scan.shipped_files.schema_of", {987_654: theirs}.get)
    assert {planned.file.physical_schema for planned in unship([ship(away)])} == {theirs}
