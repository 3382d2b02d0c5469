"""`df.writeTo("db.orders")` for lake tables."""

from typing import Any, NoReturn

from pyspark.sql import DataFrame

from bergline.errors import UnsupportedError
from bergline.format.refs import check_ref_name
from bergline.spark.errors import spark_errors
from bergline.spark.session import LakeSession
from bergline.sql.resolve import Target


class LakeWriter:
    """DataFrameWriterV2 on a lake table; `option("branch", …)` is honoured."""

    def __init__(self, session: LakeSession, frame: DataFrame, target: Target) -> None:
        self._session = session
        self._frame = frame
        self._target = target
        self._branch: str | None = None

    def option(self, key: str, value: Any) -> "LakeWriter":
        """Set `branch`; other options are refused rather than ignored."""
        with spark_errors():
            if key.lower() != "branch":
                raise UnsupportedError(f"expected the option `branch`, found `{key}`")
            check_ref_name(value)
        self._branch = value
        return self

    def options(self, **options: Any) -> "LakeWriter":
        """Set several options."""
        for key, value in options.items():
            self.option(key, value)
        return self

    def append(self) -> None:
        """Add the rows, by column name."""
        with spark_errors():
            self._session.append(self._frame, self._target, self._branch)

    def overwritePartitions(self) -> None:  # noqa: N802  (Spark's name)
        """Replace the partitions that the rows are in."""
        with spark_errors():
            self._session.overwrite_partitions(self._frame, self._target, self._branch)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        with spark_errors():
            raise UnsupportedError(f"cannot run writeTo(…).{name} on lake tables yet: append, overwritePartitions work")
