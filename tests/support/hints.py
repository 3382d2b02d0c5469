"""What an error advises, done: a hint must lead on."""

import re

from bergline import Table


def follow(table: Table, hint: str) -> None:
    """Make the calls that a hint names in back-quotes, one after the other."""
    calls = re.findall(r"`(refs\.[^`]+)`", hint)
    assert calls, hint
    for call in calls:
        eval(call, {"refs": table.refs})  # noqa: S307  (our own words)
