"""Which files are rewritten together: the rules of Iceberg's planners, with sizes as in its own tests."""

import pytest

from bergline.table.engine.file_groups import JobOrder, SizeRules, in_job_order, packed, trimmed

RULES = SizeRules(target=100, least=75, most=180)


@pytest.mark.parametrize(
    ("items", "limit", "lookback", "expected"),
    [
        # the vectors of Iceberg's TestBinPacking
        ([1, 2, 3, 4, 5], 3, 1, [[1, 2], [3], [4], [5]]),
        ([1, 2, 3, 4, 5], 4, 1, [[1, 2], [3], [4], [5]]),
        ([1, 2, 3, 4, 5], 5, 1, [[1, 2], [3], [4], [5]]),
        ([1, 2, 3, 4, 5], 6, 1, [[1, 2, 3], [4], [5]]),
        ([1, 2, 3, 4, 5], 8, 1, [[1, 2, 3], [4], [5]]),
        ([1, 2, 3, 4, 5], 10, 1, [[1, 2, 3, 4], [5]]),
        ([1, 2, 3, 4, 5], 15, 1, [[1, 2, 3, 4, 5]]),
        ([36, 36, 36, 36, 73, 110, 128], 128, 2, [[36, 36, 36], [36, 73], [110], [128]]),
    ],
)
def test_bins_are_filled_in_order(items: list[int], limit: int, lookback: int, expected: list[list[int]]) -> None:
    found = packed(items, int, limit, lookback=lookback)
    assert (found if lookback == 1 else sorted(found)) == expected


def test_bins_have_no_more_items_than_allowed() -> None:
    assert packed([1, 1, 1, 1, 1], int, 100, most_items=2) == [[1, 1], [1, 1], [1]]
    assert packed([], int, 100) == []


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([10], False),
        ([10] * 4, False),
        ([10] * 5, True),
        ([60, 60], True),
        ([100], False),
        ([180], False),
        ([181], True),
    ],
)
def test_groups_are_worth_it_by_number_and_content(sizes: list[int], expected: bool) -> None:
    assert RULES.is_worth_it(sizes) is expected


@pytest.mark.parametrize(("size", "expected"), [(74, True), (75, False), (180, False), (181, True)])
def test_files_are_off_where_they_are_too_small_or_too_large(size: int, expected: bool) -> None:
    assert RULES.is_off(size) is expected


@pytest.mark.parametrize(
    ("size", "files"),
    [(10, 1), (100, 1), (105, 1), (109, 1), (111, 2), (176, 2), (200, 2), (219, 2), (275, 3), (276, 3), (329, 3)],
)
def test_a_rest_goes_into_the_other_files_if_they_stay_close_to_the_target(size: int, files: int) -> None:
    assert RULES.expected_files(size) == files


def test_a_task_reads_what_becomes_one_file() -> None:
    large = SizeRules(target=100 * 1024, least=75 * 1024, most=180 * 1024)
    assert large.largest_file == 140 * 1024
    assert large.split_size(10) == 100 * 1024
    assert large.split_size(105 * 1024) == 110 * 1024
    assert RULES.split_size(300) == 140  # the overhead of a split is larger than the files here


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("none", [[3, 3], [1], [1, 1, 1]]),
        ("bytes-asc", [[1], [1, 1, 1], [3, 3]]),
        ("bytes-desc", [[3, 3], [1, 1, 1], [1]]),
        ("files-asc", [[1], [3, 3], [1, 1, 1]]),
        ("files-desc", [[1, 1, 1], [3, 3], [1]]),
    ],
)
def test_groups_have_an_order(order: JobOrder, expected: list[list[int]]) -> None:
    assert in_job_order([[3, 3], [1], [1, 1, 1]], int, order) == expected


def test_groups_are_trimmed_to_a_number_of_files() -> None:
    groups = [[1, 2], [3, 4, 5], [6]]
    assert trimmed(groups, None) == groups
    assert trimmed(groups, 4) == [[1, 2], [3, 4]]
    assert trimmed(groups, 2) == [[1, 2]]
