"""The turn of a commit that keeps losing: the other writers of its tables let it go first for a moment."""

import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Final
from uuid import uuid4

from bergline.catalog.catalog import Catalog
from bergline.catalog.identifiers import TableName
from bergline.catalog.turns import LONGEST_TURN_MS, holding_turn, turn_holder
from bergline.errors import BerglineError

LOSSES_BEFORE_A_TURN: Final = 2
LOSSES_OF_APPENDS: Final = 6
"""Appends are quick to repeat: they come first often enough by themselves."""
_SENDING_MS: Final = 1000
_LOG = logging.getLogger(__name__)


class CommitTurn:
    """Taken once a commit has lost some races; the lease depends on how long its attempts take."""

    def __init__(self, catalog: Catalog, tables: Sequence[TableName], clock_ms: Callable[[], int]) -> None:
        self._catalog = catalog
        self._tables = tuple(tables)
        self._clock_ms = clock_ms
        self._holder = uuid4().hex
        self._may_hold = False
        """Whether the latest request for a turn was granted, or its answer was lost."""
        self._lost = 0
        self._begun_ms = 0
        self._took_ms = 0
        self.is_held = False
        """Whether the others let this commit go first, as far as is known."""

    @contextlib.contextmanager
    def attempt(self, losses: int = LOSSES_BEFORE_A_TURN) -> Iterator[None]:
        """One attempt, in a turn if the commit has lost this often before and can get one."""
        self.is_held = self._lost >= losses and self._taken()
        self._begun_ms = self._clock_ms()
        with holding_turn(self._holder if self._may_hold else turn_holder()):
            yield

    def worked_out(self) -> None:
        """Called when the changes of the attempt are computed."""
        self._took_ms = max(self._clock_ms() - self._begun_ms, 0)

    def lost(self) -> None:
        """The attempt lost its race."""
        self._lost += 1

    def end(self) -> None:
        """Give the turn back; if that fails it ends by itself."""
        if not self._may_hold or (keeper := self._catalog.turns) is None:
            return
        try:
            keeper.give_back_turn(self._tables, self._holder)
        except BerglineError as error:
            _LOG.info("could not give back the turn on %s: %s", ", ".join(map(str, self._tables)), error)

    def _taken(self) -> bool:
        lease_ms = min(2 * self._took_ms + _SENDING_MS, LONGEST_TURN_MS)
        keeper = self._catalog.turns
        if keeper is None or self._took_ms + _SENDING_MS > LONGEST_TURN_MS:  # it would hold up the others in vain
            return False
        try:
            self._may_hold = keeper.take_turn(self._tables, self._holder, lease_ms)
        except BerglineError as error:  # a commit needs no turn
            self._may_hold = True
            _LOG.info("could not take a turn on %s: %s", ", ".join(map(str, self._tables)), error)
            return False
        return self._may_hold
