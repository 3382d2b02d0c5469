"""How long the outcome of a change is checked."""

import pytest

from bergline.catalog.status_checks import status_check_waits


def waited(properties: dict[str, str]) -> list[float]:
    found: list[float] = []
    for wait in status_check_waits(properties, found.append):
        wait()
    return found


def test_waits_double_up_to_the_longest_and_the_last_check_comes_at_once() -> None:
    found = waited(
        {
            "commit.status-check.num-retries": "4",
            "commit.status-check.min-wait-ms": "1000",
            "commit.status-check.max-wait-ms": "3000",
        }
    )
    assert len(found) == 5
    assert found[-1] == 0
    for seconds, longest in zip(found, (1, 2, 3, 3), strict=False):
        assert longest / 2 <= seconds <= longest


@pytest.mark.parametrize("properties", [{}, {"commit.status-check.num-retries": "many"}])
def test_properties_of_others_never_prevent_the_checks(properties: dict[str, str]) -> None:
    assert len(waited(properties)) == 4


def test_no_retries_is_one_check() -> None:
    assert waited({"commit.status-check.num-retries": "0"}) == [0]
