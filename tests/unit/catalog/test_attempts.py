"""Attempts that others come before."""

import itertools

import pytest

from bergline.catalog.attempts import attempts
from bergline.errors import UnavailableError


def test_after_so_many_attempts_the_next_is_an_error() -> None:
    tries = attempts("table `db.t` moved on whenever it was read", 3, UnavailableError)
    assert len(list(itertools.islice(tries, 3))) == 3
    with pytest.raises(UnavailableError, match=r"it was read, 3 times in a row\nhint: try again$"):
        next(tries)


def test_each_attempt_after_the_first_waits_for_longer() -> None:
    waited: list[int] = []
    tries = attempts("`db.t` moved on", 3, wait=waited.append)
    assert len(list(itertools.islice(tries, 3))) == 3
    assert waited == [0, 1]
