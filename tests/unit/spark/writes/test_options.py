"""The options of a write: what each is taken for, and that none is ignored."""

from typing import Any

import pytest

from bergline import Table
from bergline.errors import InvalidInputError, UnsupportedError
from bergline.spark.writes.options import WriteOptions, parse_write_options
from bergline.table.commits.isolation import NO_ISOLATION, Isolation


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, WriteOptions()),
        ({"Branch": "audit"}, WriteOptions(branch="audit")),
        ({"snapshot-property.Run": 7}, WriteOptions(summary={"Run": "7"})),
        ({"isolation-level": "snapshot"}, WriteOptions(isolation=Isolation.SNAPSHOT)),
        ({"ISOLATION-LEVEL": "None"}, WriteOptions(isolation=NO_ISOLATION)),
        ({"validate-from-snapshot-id": "12"}, WriteOptions(validate_from=12)),
        ({"overwrite-mode": "Dynamic"}, WriteOptions(overwrite_mode="dynamic")),
        ({"fanout-enabled": True}, WriteOptions(properties={"write.spark.fanout.enabled": "true"})),
    ],
)
def test_options_are_taken_whatever_their_case(given: dict[str, Any], expected: WriteOptions) -> None:
    assert parse_write_options(given) == expected


@pytest.mark.parametrize(
    ("given", "kind", "said"),
    [
        ({"overwriteSchema": "true"}, UnsupportedError, "found `overwriteSchema`"),
        ({"mergeSchema": "yes"}, InvalidInputError, "expected true or false for option `mergeSchema`, found `yes`"),
        ({"snapshot-property.": "x"}, UnsupportedError, "found `snapshot-property.`"),
        ({"branch": ["audit"]}, InvalidInputError, "expected text for option `branch`"),
        ({"branch": ""}, InvalidInputError, "ref name of 1 to 255"),
        ({"isolation-level": "low"}, InvalidInputError, "option `isolation-level`"),
        ({"validate-from-snapshot-id": "1.5"}, InvalidInputError, "expected the id of a snapshot"),
        ({"overwrite-mode": "all"}, InvalidInputError, "expected static or dynamic for option `overwrite-mode`"),
    ],
)
def test_options_that_are_not_understood_are_refused(given: dict[str, Any], kind: type[Exception], said: str) -> None:
    with pytest.raises(kind) as caught:
        parse_write_options(given)
    assert said in str(caught.value)


def test_properties_of_one_write_leave_the_table_as_it_is(orders: Table) -> None:
    options = parse_write_options({"compression-codec": "gzip"})
    assert options.applied_to(orders.metadata).properties["write.parquet.compression-codec"] == "gzip"
    assert orders.metadata.properties["write.parquet.compression-codec"] == "zstd"
    assert WriteOptions().applied_to(orders.metadata) is orders.metadata
    with pytest.raises(InvalidInputError, match=r"write\.distribution-mode"):
        parse_write_options({"distribution-mode": "some"}).applied_to(orders.metadata)


def test_overwrites_go_by_what_was_read_unless_told_otherwise() -> None:
    assert WriteOptions().goes_by_reads
    assert WriteOptions(isolation=Isolation.SNAPSHOT).goes_by_reads
    assert not WriteOptions(isolation=NO_ISOLATION).goes_by_reads
    assert not WriteOptions(validate_from=1).goes_by_reads
