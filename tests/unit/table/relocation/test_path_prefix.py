"""Locations below a prefix: replaced as a whole part of a path, or refused."""

import pytest

from bergline import Table
from bergline.errors import InvalidInputError
from bergline.table.relocation.path_prefix import PathPrefix
from support.fixtures.rows import order_rows

PREFIX = PathPrefix("s3://a/t", "s3://b/u", "/staging")


def test_paths_are_moved_and_staged() -> None:
    assert PREFIX.moved("s3://a/t/data/x.parquet") == "s3://b/u/data/x.parquet"
    assert PREFIX.moved("s3://a/t") == "s3://b/u"
    assert PREFIX.staged("s3://a/t/metadata/x.avro") == "/staging/metadata/x.avro"


@pytest.mark.parametrize("path", ["s3://a/table/x", "s3://b/t/x", "/a/t/x", ""])
def test_other_paths_are_refused(path: str) -> None:
    with pytest.raises(InvalidInputError, match=f"expected locations below s3://a/t, found {path}"):
        PREFIX.moved(path)


def test_directories_that_are_elsewhere_stay_there(orders: Table) -> None:
    orders.append(order_rows(1)).set_properties({"write.data.path": "s3://other/data", "owner": orders.location})
    moved = PathPrefix(orders.location, "/new", "/staging").metadata(orders.metadata)
    assert moved.properties["write.data.path"] == "s3://other/data"
    assert moved.properties["owner"] == orders.location
    assert moved.location == "/new"
    assert [s.manifest_list for s in moved.snapshots if not (s.manifest_list or "").startswith("/new/metadata/")] == []
