"""Completion at the prompt: keywords, tables with their branches and tags, and columns."""

from collections.abc import Callable
from contextlib import suppress
from functools import cached_property

from bergline.errors import BerglineError
from bergline.lake.lake import Lake

DELIMITERS = " \t\n`~!@#$%^&*()-=+[{]}\\|;:'\",<>/?"
"""The characters that end a word; a dot does not."""
_KEYWORDS = [
    "ALTER TABLE",
    "AND",
    "AS",
    "BETWEEN",
    "BRANCH",
    "BY",
    "CALL",
    "CASE",
    "COUNT",
    "CREATE",
    "CREATE BRANCH",
    "CREATE TAG",
    "DELETE FROM",
    "DESCRIBE",
    "DISTINCT",
    "DROP",
    "ELSE",
    "END",
    "EXISTS",
    "EXPLAIN",
    "FROM",
    "GROUP BY",
    "HAVING",
    "IN",
    "INSERT INTO",
    "IS",
    "JOIN",
    "LEFT",
    "LIKE",
    "LIMIT",
    "MERGE INTO",
    "NOT",
    "NULL",
    "ON",
    "OR",
    "ORDER BY",
    "SELECT",
    "SET",
    "SHOW TABLES",
    "SUM",
    "TABLE",
    "TAG",
    "THEN",
    "TIMESTAMP AS OF",
    "UNION",
    "UPDATE",
    "USE",
    "USING",
    "VALUES",
    "VERSION AS OF",
    "WHEN",
    "WHERE",
    "WITH",
]
_MOST = 200
_MOST_TABLES = 5000


class Completion:
    """Completes words from a lake, which is opened for the first one; without a lake, only keywords."""

    def __init__(self, open_lake: Callable[[], Lake]) -> None:
        self._open = open_lake
        self._words: dict[str, list[str]] = {}

    def of(self, word: str, statement: str) -> list[str]:
        """The completions of a word; columns are those of the tables that the statement names."""
        with suppress(BerglineError):
            return self._of(word, statement)
        return []

    @cached_property
    def _lake(self) -> Lake | None:
        try:
            return self._open()
        except BerglineError:
            return None

    @cached_property
    def _tables(self) -> list[str]:
        return [] if self._lake is None else self._lake.list_tables()[:_MOST_TABLES]

    def close(self) -> None:
        """Close the lake, if it was opened."""
        if "_lake" in self.__dict__ and self._lake is not None:
            self._lake.close()

    def _of(self, word: str, statement: str) -> list[str]:
        named = [table for table in self._tables if table in statement]
        words = [k if word[:1].isupper() or not word else k.lower() for k in _KEYWORDS]
        words += [*self._tables, *(inner for table in named for inner in self._of_table(table))]
        start = word.casefold()
        return list(dict.fromkeys(w for w in words if w.casefold().startswith(start)))[:_MOST]

    def _of_table(self, name: str) -> list[str]:
        """The columns of a table, and what may follow its name."""
        if name not in self._words and self._lake is not None:
            table = self._lake.load_table(name)
            refs = [f"{name}.{ref.snapshot_ref_type}_{of}" for of, ref in table.metadata.refs.items()]
            self._words[name] = [*(field.name for field in table.schema.fields), *refs]
        return self._words.get(name, [])
