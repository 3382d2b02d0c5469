"""Columns by SQL texts: Spark is handed a projection as a whole, where PySpark makes calls for each column.

What has no text that means the same under all settings is a column expression, which is computed first.
"""

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

from pyspark.sql import Column, DataFrame

from bergline.quoting import back_quoted
from bergline.spark.backends.choose import backend_of

SqlOrColumn = str | Column
"""SQL text, or an expression that has none."""
Key = TypeVar("Key", bound=Hashable)
_VALUE = "_bergline_value_"


def project(frame: DataFrame, columns: Iterable[tuple[str, SqlOrColumn]]) -> DataFrame:
    """A frame of these columns, each by its name."""
    names, values = zip(*columns, strict=True)
    frame, texts = with_computed(frame, dict(enumerate(values)))
    named = [f"{text} AS {back_quoted(name)}" for name, text in zip(names, texts.values(), strict=True)]
    return backend_of(frame).select_texts(frame, named)


def with_computed(frame: DataFrame, values: Mapping[Key, SqlOrColumn]) -> tuple[DataFrame, dict[Key, str]]:
    """The values as texts, on a frame that has values without a text as columns of its own."""
    texts: dict[Key, str] = {}
    computed: dict[str, Column] = {}
    for number, (key, value) in enumerate(values.items()):
        if isinstance(value, str):
            texts[key] = value
        else:
            texts[key] = name = f"{_VALUE}{number}"
            computed[name] = value
    return (frame.withColumns(computed) if computed else frame), texts
