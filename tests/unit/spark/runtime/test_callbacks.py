"""Errors that are raised while Spark calls this process."""

import logging

import pytest
from pyspark.errors import AnalysisException, PySparkException

from bergline.errors import NotFoundError
from bergline.spark.runtime.callbacks import CallbackError, is_not_ours, with_callback_errors


class JavaError(PySparkException):
    """An error as PySpark makes it of Java's, with its stack trace as text."""

    _stackTrace = ""  # noqa: N815  (PySpark's name)


def converted(text: str) -> Exception:
    error = JavaError(message="failed")
    error._stackTrace = text
    return with_callback_errors(lambda _: error)(None)


def test_an_error_is_found_again_by_its_number_in_javas_text() -> None:
    own = NotFoundError("no table `db.t`", kind="table", name="db.t")
    found = converted(f"py4j.Py4JException: Return Message: Traceback …\n{CallbackError(own)}\n\tat java.lang.Thread")
    assert isinstance(found, NotFoundError)
    assert isinstance(found, AnalysisException)
    assert converted(str(CallbackError(ValueError("5")))).args == ("5",)


@pytest.mark.parametrize("text", ["", "java.io.IOException: gone", "bergline error number 999999999: forgotten"])
def test_other_errors_stay_what_they_are(text: str) -> None:
    assert isinstance(converted(text), JavaError)


def test_only_errors_of_others_are_logged() -> None:
    def logged(error: Exception) -> bool:
        return is_not_ours(logging.LogRecord("py4j", logging.ERROR, "", 1, "", (), (type(error), error, None)))

    assert logged(ValueError())
    assert not logged(CallbackError(ValueError()))
    assert is_not_ours(logging.LogRecord("py4j", logging.ERROR, "", 1, "", (), None))
