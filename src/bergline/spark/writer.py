"""`df.writeTo("db.orders")` for lake tables."""

from typing import Any, NoReturn

from pyspark.sql import DataFrame

from bergline.errors import UnsupportedError
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
        if key.lower() != "branch":
            raise UnsupportedError(f"expected the option `branch`, found `{key}`")
        self._branch = str(value)
        return self

    def options(self, **options: Any) -> "LakeWriter":
        """Set several options."""
        for key, value in options.items():
            self.option(key, value)
        return self

    def append(self) -> None:
        """Add the rows, by column name."""
        self._session.append(self._frame, self._target, self._branch)

    def overwritePartitions(self) -> None:  # noqa: N802  (Spark's name)
        """Replace the partitions that the rows are in."""
        self._session.overwrite_partitions(self._frame, self._target, self._branch)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):
            raise AttributeError(name)
        raise UnsupportedError(f"cannot run writeTo(…).{name} on lake tables yet: append and overwritePartitions work")
