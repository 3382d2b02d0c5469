"""Errors of ours that are raised while Spark calls this process: what comes back is a text in a Java exception.

It has a number, by which the error is found again where PySpark makes a Python exception of Java's.
"""

import itertools
import logging
import re
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from bergline.errors import BerglineError
from bergline.spark.runtime.errors import spark_error

_MOST_KEPT = 64
_RAISED: OrderedDict[int, Exception] = OrderedDict()
_NUMBERS = itertools.count(1)
_NUMBERED = re.compile(r"bergline error number (\d+)")


class CallbackError(Exception):
    """Stands for another error, which Java knows by its number."""

    def __init__(self, error: Exception) -> None:
        number = next(_NUMBERS)
        super().__init__(f"bergline error number {number}: {error}")
        _RAISED[number] = error
        while len(_RAISED) > _MOST_KEPT:
            _RAISED.popitem(last=False)


def with_callback_errors(convert: Callable[[Any], Exception]) -> Callable[[Any], Exception]:
    """PySpark's function that makes Python exceptions of Java's, with the error itself where a call of ours failed."""

    def converted(java_exception: Any) -> Exception:
        error = convert(java_exception)
        found = _NUMBERED.search(f"{getattr(error, '_desc', '')}\n{getattr(error, '_stackTrace', '')}")
        own = _RAISED.get(int(found[1])) if found else None
        if own is None:
            return error
        return spark_error(own) if isinstance(own, BerglineError) else own

    return converted


def is_not_ours(record: logging.LogRecord) -> bool:
    """Whether what is logged is something else than an error of ours, which is raised where Spark was called."""
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, CallbackError)
