"""Files that Spark's own reader cannot open at all."""

import msgspec
import pytest

from bergline import Lake
from bergline.format.schema.schema import Schema
from bergline.format.types.types import LONG, STRING, VARIANT, GeometryType, IcebergType, NestedField
from bergline.spark.reads import groups, native_columns
from bergline.spark.reads.evidence import FileEvidence


@pytest.mark.parametrize("type_", [VARIANT, GeometryType("OGC:CRS84"), STRING], ids=str)
def test_older_versions_of_spark_get_no_file_with_an_annotation_that_they_do_not_know(
    lake: Lake, type_: IcebergType, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = Schema(fields=(NestedField(1, "id", False, LONG), NestedField(2, "c", False, type_)))
    table = lake.create_table("db.t", schema, properties={"format-version": "3"})
    table.append([{"id": 1}])
    # whatever columns are read, and none for a count
    whole = table.scan().plan()
    plans = [whole, *(msgspec.structs.replace(whole, schema=Schema(fields=schema.fields[:n])) for n in (1, 0))]

    def refusals() -> list[str | None]:
        found = [groups.read_groups(plan, FileEvidence(table.io).look_up) for plan in plans]
        return [group.reason if group.reader == "arrow" else None for (group,) in found]

    assert refusals() == [None] * 3
    for module in (groups, native_columns):
        monkeypatch.setattr(module, "KNOWS_NEW_ANNOTATIONS", False)
    assert [refusal is None for refusal in refusals()] == [type_ == STRING] * 3
    assert type_ == STRING or "may not open files with a column such as `c`" in (refusals()[-1] or "")
