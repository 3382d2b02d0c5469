"""Chance that is the same in every run, and another one for each seed of `make torture`."""

import os
import random

_SEED = int(os.environ.get("BERGLINE_SEED", "0"))


def chance(number: int) -> random.Random:
    """Random numbers of a test's own."""
    return random.Random(f"{_SEED}/{number}")  # noqa: S311
