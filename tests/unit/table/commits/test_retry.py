"""How often a commit is tried again, and how long it waits in between."""

import msgspec
import pytest
from rows import ORDERS

import bergline
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.table.commits.retry import RetryLimits, retry_limits


@pytest.fixture
def metadata() -> TableMetadata:
    lake = bergline.connect("memory:")
    lake.create_namespace("db")
    return lake.create_table("db.orders", ORDERS).metadata


def with_properties(metadata: TableMetadata, **properties: str) -> TableMetadata:
    return msgspec.structs.replace(
        metadata, properties={f"commit.retry.{k.replace('_', '-')}": v for k, v in properties.items()}
    )


def longest_waits(limits: RetryLimits, attempts: int) -> list[float]:
    return [limits.wait_seconds(n, lambda _, high: high) for n in range(1, attempts + 1)]


def test_who_has_lost_often_waits_less_again(metadata: TableMetadata) -> None:
    limits = retry_limits([metadata], needs_validation=False)
    assert longest_waits(limits, 12) == [0.1, 0.2, 0.4, 0.8, 1.6, 0.8, 0.4, 0.2, 0.1, 0.05, 0.05, 0.05]


@pytest.mark.parametrize(
    ("properties", "waits"),
    [
        ({"min_wait_ms": "10", "max_wait_ms": "35"}, [0.01, 0.02, 0.035, 0.035]),
        ({"max_wait_ms": "300"}, [0.1, 0.2, 0.3, 0.3]),
        ({"min_wait_ms": "20000"}, [20, 40, 60, 60]),
    ],
)
def test_waits_that_a_table_sets_double_up_to_the_longest(
    metadata: TableMetadata, properties: dict[str, str], waits: list[float]
) -> None:
    limits = retry_limits([with_properties(metadata, **properties)], needs_validation=False)
    assert longest_waits(limits, 4) == waits


def test_every_attempt_counts_only_where_a_table_sets_the_number(metadata: TableMetadata) -> None:
    three = with_properties(metadata, num_retries="3")
    assert retry_limits([metadata], needs_validation=False).retries is None
    for meaning in (False, True):
        limits = retry_limits([metadata, three], needs_validation=meaning)
        assert (limits.retries, limits.every_attempt_counts) == (3, True)
    limits = retry_limits([metadata], needs_validation=True)
    assert (limits.retries, limits.every_attempt_counts) == (4, False)
