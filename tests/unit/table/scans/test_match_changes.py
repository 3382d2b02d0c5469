"""Changes that cancel each other out, update images, and rows that do not fit into memory."""

import math
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from bergline.errors import InvalidInputError
from bergline.table.scans.changelog_scan import MatchRules
from bergline.table.scans.match_changes import match_changes

WORDS = {"+": "INSERT", "-": "DELETE"}
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("x", pa.float64()),
        pa.field("_row_id", pa.int64()),
        pa.field("_change_type", pa.string(), nullable=False),
        pa.field("_change_ordinal", pa.int32()),
        pa.field("_commit_snapshot_id", pa.int64()),
    ]
)


def changes(*rows: tuple[Any, ...]) -> pa.RecordBatch:
    """Rows like ("+", ordinal, id, x, row id)."""
    return pa.RecordBatch.from_pylist(
        [
            {
                "id": key,
                "x": x,
                "_row_id": row_id,
                "_change_type": WORDS[sign],
                "_change_ordinal": ordinal,
                "_commit_snapshot_id": ordinal + 100,
            }
            for sign, ordinal, key, x, row_id in ((*row, None) if len(row) == 4 else row for row in rows)
        ],
        schema=SCHEMA,
    )


def matched(rules: MatchRules, *rows: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    batch = changes(*rows)
    if not rules.by_row_id:
        batch = batch.drop_columns(["_row_id"])
    found = match_changes([batch], rules, most_rows=len(rows))
    return [(r["_change_type"], r["_change_ordinal"], r["id"], r["x"]) for part in found for r in part.to_pylist()]


def test_rows_that_were_only_copied_are_no_change() -> None:
    left = matched(MatchRules(), ("-", 0, 1, 1.0), ("-", 0, 2, 2.0), ("+", 0, 1, 1.0), ("+", 1, 2, 2.0))
    assert left == [("DELETE", 0, 2, 2.0), ("INSERT", 1, 2, 2.0)]


def test_equal_rows_are_counted() -> None:
    left = matched(MatchRules(), *[("-", 0, 1, None)] * 3, ("+", 0, 1, None), *[("+", 0, 2, None)] * 2)
    assert Counter(left) == {("DELETE", 0, 1, None): 2, ("INSERT", 0, 2, None): 2}


def test_nan_equals_nan_and_zeros_have_signs() -> None:
    left = matched(MatchRules(), ("-", 0, 1, math.nan), ("+", 0, 1, math.nan), ("-", 0, 1, 0.0), ("+", 0, 1, -0.0))
    assert [(word, math.copysign(1, x)) for word, _, _, x in left] == [("DELETE", 1.0), ("INSERT", -1.0)]


def test_net_changes_are_those_that_nothing_cancels_out() -> None:
    rules = MatchRules(net=True)
    assert matched(rules, ("+", 0, 1, 1.0), ("-", 1, 1, 1.0), ("+", 2, 1, 1.0)) == [("INSERT", 2, 1, 1.0)]
    assert matched(rules, ("-", 0, 1, 1.0), ("+", 1, 1, 1.0)) == []
    # as in the official runtime, equal rows that are left have the ordinal of the first
    assert matched(rules, ("+", 0, 1, 1.0), ("+", 1, 1, 1.0)) == [("INSERT", 0, 1, 1.0)] * 2


def test_update_images_by_identifier_columns() -> None:
    rules = MatchRules(identifiers=("id",))
    rows = [("+", 0, 1, 1.0), ("-", 1, 1, 1.0), ("+", 1, 1, 2.0), ("-", 1, 2, 1.0), ("+", 1, 3, 1.0)]
    assert matched(rules, *rows) == [
        ("INSERT", 0, 1, 1.0),
        ("UPDATE_BEFORE", 1, 1, 1.0),
        ("UPDATE_AFTER", 1, 1, 2.0),
        ("DELETE", 1, 2, 1.0),
        ("INSERT", 1, 3, 1.0),
    ]


def test_an_update_of_a_row_with_a_null_key() -> None:
    found = matched(MatchRules(identifiers=("id",)), ("-", 0, None, 1.0), ("+", 0, None, 2.0))
    assert [word for word, *_ in found] == ["UPDATE_BEFORE", "UPDATE_AFTER"]


def test_net_update_images_are_of_different_snapshots() -> None:
    rules = MatchRules(net=True, identifiers=("id",))
    rows = [("-", 0, 1, 1.0), ("+", 0, 1, 2.0), ("-", 1, 1, 2.0), ("+", 1, 1, 3.0)]
    assert matched(rules, *rows) == [("UPDATE_BEFORE", 0, 1, 1.0), ("UPDATE_AFTER", 1, 1, 3.0)]


def test_columns_that_do_not_identify_rows() -> None:
    with pytest.raises(InvalidInputError, match="expected rows that `id` identify to compute updates, found several"):
        matched(MatchRules(identifiers=("id",)), ("-", 0, 1, 1.0), ("-", 0, 1, 2.0), ("+", 0, 1, 3.0))


def test_several_deleted_rows_of_one_identity_are_no_update() -> None:
    found = matched(MatchRules(identifiers=("id",)), ("-", 0, 1, 1.0), ("-", 0, 1, 1.0), ("+", 0, 2, 3.0))
    assert [word for word, *_ in found] == ["DELETE", "DELETE", "INSERT"]


def test_update_images_by_row_id() -> None:
    rules = MatchRules(by_row_id=True)
    swapped = [("-", 0, 1, 1.0, 7), ("-", 0, 2, 2.0, 8), ("+", 0, 2, 2.0, 7), ("+", 0, 1, 1.0, 8)]
    assert Counter(matched(rules, *swapped)) == {
        ("UPDATE_BEFORE", 0, 1, 1.0): 1,
        ("UPDATE_AFTER", 0, 2, 2.0): 1,
        ("UPDATE_BEFORE", 0, 2, 2.0): 1,
        ("UPDATE_AFTER", 0, 1, 1.0): 1,
    }


def test_rows_without_an_identity_of_their_own_are_matched_by_value() -> None:
    rules = MatchRules(by_row_id=True)
    carried = [("-", 0, 1, 1.0, 7), ("+", 0, 1, 1.0, 7), ("-", 0, 2, 2.0, None), ("+", 0, 2, 2.0, None)]
    assert matched(rules, *carried, ("-", 0, 3, 3.0, None), ("+", 0, 4, 3.0, 9)) == [
        ("DELETE", 0, 3, 3.0),
        ("INSERT", 0, 4, 3.0),
    ]


@pytest.mark.long
@pytest.mark.parametrize(
    "rules",
    [MatchRules(), MatchRules(net=True), MatchRules(identifiers=("id",)), MatchRules(by_row_id=True)],
    ids=["carry-overs", "net", "identifiers", "row ids"],
)
def test_what_does_not_fit_into_memory_is_matched_in_parts(rules: MatchRules) -> None:
    some = random.Random(3)  # noqa: S311
    rows: list[tuple[Any, ...]] = []
    for key in range(2_000):
        rows += [("-", 0, key, 1.0, key), ("+", 0, key, some.choice([1.0, 2.0]), key)]
    some.shuffle(rows)
    batches = [changes(*rows[i : i + 100]) for i in range(0, len(rows), 100)]
    if not rules.by_row_id:
        batches = [batch.drop_columns(["_row_id"]) for batch in batches]
    whole, parts = (
        pa.Table.from_batches(match_changes(batches, rules, most_rows=len(rows), memory=memory))
        for memory in (1 << 30, 5_000)
    )
    assert 0 < whole.num_rows < len(rows)
    assert Counter(map(str, parts.to_pylist())) == Counter(map(str, whole.to_pylist()))


@pytest.mark.long
def test_memory_does_not_grow_with_the_rows() -> None:
    start, most = pa.total_allocated_bytes(), 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal most
        for number in range(60):
            keys = range(number // 2 * 5_000, (number // 2 + 1) * 5_000)
            signs = "+-"[number % 2]
            yield changes(*((signs, 0, key, float(key)) for key in keys)).drop_columns(["_row_id"])
            most = max(most, pa.total_allocated_bytes() - start)

    one = next(batches()).nbytes
    left = 0
    for batch in match_changes(batches(), MatchRules(), most_rows=300_000, memory=2 * one):
        left += batch.num_rows
        most = max(most, pa.total_allocated_bytes() - start)
    assert left == 0
    assert most < 12 * one


def test_nested_values_are_compared() -> None:
    kinds = {
        "m": pa.map_(pa.string(), pa.int64()),
        "l": pa.list_(pa.timestamp("us")),
        "s": pa.struct([("x", pa.float64())]),
        "u": pa.uuid(),
        "n": pa.null(),
        "b": pa.binary(4),
        "c": pa.decimal128(9, 2),
    }
    values = {"m": [("a", 1)], "l": [None], "s": {"x": math.nan}, "u": b"0123456789abcdef", "b": b"abcd", "c": 1}

    def rows(word: str, **other: Any) -> pa.RecordBatch:
        columns = [
            pa.array([(values | other).get(name)], kind.storage_type if name == "u" else kind).cast(kind)
            for name, kind in kinds.items()
        ]
        tail = [pa.array([word]), pa.array([0], pa.int32()), pa.array([1])]
        return pa.record_batch([*columns, *tail], names=[*kinds, *SCHEMA.names[3:]])

    for memory in (1 << 30, 1):
        batches = [rows("DELETE"), rows("INSERT"), rows("INSERT", m=[("a", 2)])]
        left = pa.Table.from_batches(match_changes(batches, MatchRules(), most_rows=3, memory=memory))
        assert left.column("m").to_pylist() == [[("a", 2)]]
