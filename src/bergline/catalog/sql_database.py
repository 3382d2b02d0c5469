"""A database that holds a catalog: what is different from one to the other."""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import Any

import sqlalchemy as sa


class SqlDatabase(ABC):
    """Which database it is shows in `reading` and `writing`, and in what their errors mean."""

    def __init__(self, engine: sa.Engine) -> None:
        self.engine = engine

    @abstractmethod
    def reading(self) -> AbstractContextManager[sa.Connection]:
        """A connection to read with."""

    @abstractmethod
    def writing(self) -> AbstractContextManager[sa.Connection]:
        """A transaction, committed at the end; UnavailableError if and only if nothing was changed for certain."""

    @abstractmethod
    def insert(self, table: sa.Table) -> Any:
        """An INSERT that knows ON CONFLICT."""

    def close(self) -> None:
        """Let go of the database."""
        self.engine.dispose()
