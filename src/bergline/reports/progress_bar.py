"""Progress in a notebook: a bar below the cell, for every method that takes `progress`."""

import sys
import time
from typing import Any

from bergline.markup import escaped

_SECONDS_BETWEEN = 0.2


class ProgressBar:
    """A bar with rate and estimate: `progress=bergline.ProgressBar("expire")`. Outside of notebooks it shows nothing.

    It is called with how many are done and how many there are, the last two of its arguments.
    """

    def __init__(self, label: str = "") -> None:
        self._label = label
        self._started = time.monotonic()
        self._shown_at = 0.0
        self._done = self._total = 0
        self._handle: Any = None

    def __call__(self, *counts: Any) -> None:
        """Show the new state; updates that come too fast to be seen are dropped."""
        self._done, self._total = counts[-2:]
        now = time.monotonic()
        if self._done < self._total and now - self._shown_at < _SECONDS_BETWEEN:
            return
        self._shown_at = now
        if self._handle is not None:
            self._handle.update(self)
        elif (display := _display()) is not None:
            self._handle = display(self, display_id=True)

    def __repr__(self) -> str:
        return f"{self._label} {self._done:,} of {self._total:,}{self._pace()}".strip()

    def _repr_html_(self) -> str:
        bar = f'<progress max="{self._total}" value="{self._done}"></progress>'
        return f"<div>{escaped(self._label)} {bar} {self._done:,} of {self._total:,}{self._pace()}</div>"

    def _pace(self) -> str:
        elapsed = time.monotonic() - self._started
        if not self._done or elapsed <= 0:
            return ""
        rate = self._done / elapsed
        left = (self._total - self._done) / rate
        return f", {rate:,.1f}/s" + (f", {left:,.0f} s left" if left else "")


def _display() -> Any:
    """The notebook's `display`; None outside of one. IPython is never imported here: in a notebook it already is."""
    interactive = sys.modules.get("IPython")
    if interactive is None or interactive.get_ipython() is None:
        return None
    return sys.modules["IPython.display"].display
