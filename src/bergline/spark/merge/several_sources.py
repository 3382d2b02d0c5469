"""The error of a MERGE in which several source rows match one row of the table."""

from collections.abc import Callable

import msgspec
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark users know)

from bergline.arguments import shown
from bergline.errors import InvalidInputError, SqlSyntaxError
from bergline.format.schema.reserved import FILE, POS
from bergline.format.schema.schema import Schema
from bergline.io.fileio import FileIO
from bergline.quoting import back_quoted
from bergline.scan.plan import ScanPlan
from bergline.spark.reads.scan import read_plan
from bergline.sql.text.tokens import SqlText, TokenKind

_SHOWN = 3


class SeveralSources(msgspec.Struct, frozen=True):
    """Makes the error, which names the row by the columns of the table that the condition speaks of.

    A condition that speaks of none is true for all rows: then the first columns name it.
    """

    plan: Callable[[str], ScanPlan]
    """A plan that has the file of this path."""
    condition: str
    target: str
    """What the table's columns may be qualified by in the condition."""
    schema: Schema
    io: FileIO
    spark: SparkSession

    def __call__(self, path: str, position: int) -> InvalidInputError:
        """The error; the row's key is read for it, which takes a task."""
        return InvalidInputError(
            f"expected at most one source row for each row of the table in MERGE, found several for the row "
            f"{self._key(path, position) or f'at position {position} of {path}'}",
            hints=["keep one source row for each row of the table, or make the condition stricter"],
            condition="MERGE_CARDINALITY_VIOLATION",
        )

    def _key(self, path: str, position: int) -> str:
        names = _key_columns(self.condition, self.schema, self.target) or [
            field.name for field in self.schema.fields[:_SHOWN]
        ]
        plan = self.plan(path)
        files = [file for file in plan.files if file.file.file_path == path]
        wanted = Schema(fields=(POS, FILE, *(self.schema.find(name) for name in names)))
        rows = read_plan(msgspec.structs.replace(plan, files=files, schema=wanted), self.spark, self.io)
        row = rows.where(F.col(POS.name) == position).select(*map(back_quoted, names)).first()
        return "" if row is None else f"with {', '.join(map(_equation, names, row))}"


def _key_columns(condition: str, schema: Schema, target: str) -> list[str]:
    """The columns of a target that a condition names, alone or with the target's name in front."""
    try:
        tokens = SqlText(condition).tokens
    except SqlSyntaxError:
        return []
    found: dict[str, None] = {}
    for place, token in enumerate(tokens):
        qualifier = tokens[place - 2].value if place > 1 and tokens[place - 1].is_symbol(".") else target
        column = next((f.name for f in schema.fields if f.name.casefold() == token.value.casefold()), None)
        if (
            column is not None
            and token.kind in {TokenKind.WORD, TokenKind.QUOTED}
            and qualifier.casefold() == target.casefold()
        ):
            found[column] = None
    return list(found)


def _equation(name: str, value: object) -> str:
    return f"{name} = {shown(value)}"
