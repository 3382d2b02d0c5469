"""Statements without Spark, and their rows."""

from bergline.cli.output.row_writer import FirstRows, RowFormat, write_rows
from bergline.cli.sql_shell.local_sql import LocalSql
from bergline.cli.sql_shell.shell import SHOWN_ROWS, OutputFormat, say_that_more_follow

_FORMATS = {
    OutputFormat.TABLE: RowFormat.TABLE,
    OutputFormat.CSV: RowFormat.CSV,
    OutputFormat.JSON: RowFormat.JSONL,
}


class LocalStatements:
    """Runs statements in this process and prints their rows."""

    def __init__(self, sql: LocalSql, output: OutputFormat, limit: int | None) -> None:
        self._sql = sql
        self._output = output
        self._limit = SHOWN_ROWS if limit is None and output is OutputFormat.TABLE else limit

    def run(self, text: str) -> int | None:
        """Run a statement; returns how many rows were printed, if it has any."""
        rows = self._sql.run(text)
        if rows is None:
            return None
        if self._limit is None:
            return write_rows(rows.schema, rows, _FORMATS[self._output], None)
        first = FirstRows(rows, self._limit, look_further=self._output is OutputFormat.TABLE)
        count = write_rows(rows.schema, first, _FORMATS[self._output], None)
        if first.has_more and self._output is OutputFormat.TABLE:
            say_that_more_follow(self._limit)
        return count
