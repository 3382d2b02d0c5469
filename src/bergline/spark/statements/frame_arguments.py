"""`spark.sql("… FROM {changes}", changes=frame)`: frames as arguments stand in a statement by names of their own."""

import uuid
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame

from bergline.spark.runtime.backend import SparkBackend
from bergline.spark.runtime.sql_backend import RunSql
from bergline.sql.queries.rewritten import escaped


def with_named_frames(
    text: str, values: Mapping[str, Any], backend: SparkBackend
) -> tuple[str, Mapping[str, DataFrame]]:
    """The text with values in place of its `{names}`, as Spark writes them; a frame gets a new name."""
    frames: dict[str, DataFrame] = {}
    formatter: Any = backend.sql.formatter()
    convert = formatter._convert_value  # noqa: SLF001  (where PySpark makes a temporary view of a frame)

    def converted(value: Any, field: str) -> Any:
        if not isinstance(value, DataFrame):
            return convert(value, field)
        known = next((name for name, frame in frames.items() if frame is value), None)
        name = known or f"bergline_frame_{uuid.uuid4().hex}"
        frames[name] = value
        return name

    formatter._convert_value = converted  # noqa: SLF001
    return formatter.format(text, **values), frames


def run_with_frames(run_sql: RunSql, frames: Mapping[str, DataFrame]) -> RunSql:
    """The session's own `sql` for texts in which frames stand by these names."""

    def run(text: str, args: Any = None, **more: Any) -> DataFrame:
        template = text if more else escaped(text)
        used = {name: frame for name, frame in frames.items() if name in template}
        for name in used:
            template = template.replace(name, f"{{{name}}}")
        return run_sql(template, args, **more, **used) if more or used else run_sql(text, args)

    return run
