"""Every session that `SparkSession.builder` gives gets its lakes: for scripts that know nothing of them."""

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any

from pyspark.sql import SparkSession

from bergline.spark.session.attach import attach, is_attached

_ATTACHED_BY_CALLER: ContextVar[bool] = ContextVar("attached_by_caller", default=False)


def attach_every_session(settings: Mapping[str, str]) -> None:
    """Attach sessions as they are built: their own settings come first, then these.

    `newSession` of such a session has its lakes too, and so has one that is built after another was stopped.
    """
    for method in ("getOrCreate", "create"):
        setattr(SparkSession.Builder, method, _attaching(getattr(SparkSession.Builder, method), settings))


@contextlib.contextmanager
def attached_by_caller() -> Iterator[None]:
    """Sessions that are built in the block get the settings, and no lakes."""
    token = _ATTACHED_BY_CALLER.set(True)
    try:
        yield
    finally:
        _ATTACHED_BY_CALLER.reset(token)


def _attaching(build: Callable[[Any], SparkSession], settings: Mapping[str, str]) -> Callable[[Any], SparkSession]:
    @functools.wraps(build)
    def attached(builder: Any) -> SparkSession:
        for key, value in settings.items():
            builder._options.setdefault(key, value)  # noqa: SLF001  (`config` would replace what the script says)
        spark = build(builder)
        if not _ATTACHED_BY_CALLER.get() and not is_attached(spark):
            attach(spark)
        return spark

    return attached
