"""How long to check the outcome of a change whose response was lost, by the `commit.status-check.*` properties."""

import random
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from bergline.errors import InvalidInputError
from bergline.format.metadata.properties import whole_number


def status_check_waits(properties: Mapping[str, str], sleep: Callable[[float], None]) -> Iterator[Callable[[], None]]:
    """A wait for each status check; the last one is zero."""
    retries = _number(properties, "commit.status-check.num-retries", 3)
    least = _number(properties, "commit.status-check.min-wait-ms", 1000)
    most = _number(properties, "commit.status-check.max-wait-ms", 60_000)
    for number in range(retries + 1):
        seconds = random.uniform(0.5, 1) * min(least * 2**number, most) / 1000  # noqa: S311
        yield partial(sleep, 0 if number == retries else seconds)


def _number(properties: Mapping[str, str], key: str, default: int) -> int:
    """A property, or its default: an invalid value must not prevent the status checks."""
    try:
        return whole_number(properties, key, default)
    except InvalidInputError:
        return default
