"""How often a commit is tried again, and how long it waits in between."""

import msgspec
import pytest

import bergline
from bergline.catalog.catalog import Conflicted, Unknown
from bergline.catalog.identifiers import TableName
from bergline.errors import CommitUnknownError, ConflictError, UnavailableError
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.table.commits.retry import RetryLimits, RetryLoop, Timing, retry_limits
from support.fixtures.rows import ORDERS


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


class Waits:
    """A clock that stands still and notes the waits."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.timing = Timing(clock_ms=lambda: 0, sleep=self.seconds.append, uniform=lambda _, high: high)


def lost(base: str = "") -> Conflicted:
    return Conflicted(ConflictError("moved on"), (base,))


def test_conflicts_are_retried_until_an_attempt_settles() -> None:
    waits, numbers = Waits(), []

    def attempt(number: int) -> str | Conflicted:
        numbers.append(number)
        return "done" if number == 3 else lost(str(number))

    assert RetryLoop(waits.timing, RetryLimits).run(attempt) == "done"
    assert (numbers, waits.seconds) == ([1, 2, 3], [0.1, 0.2])


def test_store_that_is_unavailable_is_retried_a_limited_number_of_times() -> None:
    waits, calls = Waits(), []

    def attempt(number: int) -> str:
        calls.append(number)
        raise UnavailableError("locked")

    with pytest.raises(UnavailableError, match="locked"):
        RetryLoop(waits.timing, lambda: RetryLimits(when_unavailable=2)).run(attempt)
    assert (calls, waits.seconds) == ([1, 2, 3], [0.1, 0.2])


def test_unknown_outcome_ends_the_loop_and_says_how_to_find_out() -> None:
    table = TableName(("db",), "orders")
    with pytest.raises(CommitUnknownError, match=r"whether the commit to `db\.orders` happened: cut") as error:
        RetryLoop(Waits().timing, RetryLimits).run(lambda _: Unknown(table, "/m.json", "cut"))
    assert error.value.metadata_location == "/m.json"
    assert error.value.hints == ("it happened if /m.json is the table's pointer or in its metadata log",)


def test_conflicts_on_a_pointer_that_never_moves_are_given_up_as_stuck() -> None:
    waits = Waits()
    loop = RetryLoop(waits.timing, lambda: RetryLimits(when_unmoved=2))
    with pytest.raises(ConflictError, match="nobody else committed before the last 4 of them"):
        loop.run(lambda _: lost("/same.json"))
    assert loop.is_stuck
    assert waits.seconds == [0.1, 0.2, 0.4]


def test_number_of_retries_is_kept_to() -> None:
    calls: list[int] = []

    def attempt(number: int) -> Conflicted:
        calls.append(number)
        return lost(str(number))

    with pytest.raises(ConflictError, match=r"moved on; gave up after 3 attempts in 0\.0 s"):
        RetryLoop(Waits().timing, lambda: RetryLimits(retries=2)).run(attempt)
    assert calls == [1, 2, 3]
