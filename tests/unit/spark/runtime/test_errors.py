import re
from pathlib import Path

import pytest
from pyspark.errors import (
    AnalysisException,
    IllegalArgumentException,
    ParseException,
    PySparkException,
    SparkRuntimeException,
    UnsupportedOperationException,
)

import bergline
from bergline.errors import (
    AlreadyExistsError,
    BerglineError,
    ConflictError,
    InvalidInputError,
    NotEmptyError,
    NotFoundError,
    RefusedError,
    SqlSyntaxError,
    UnsupportedError,
)
from bergline.spark.runtime.errors import _SQL_STATES, spark_error, spark_errors, with_busy_machines


@pytest.mark.parametrize(
    ("error", "theirs"),
    [
        (SqlSyntaxError("expected FROM", line=1, column=8), ParseException),
        (InvalidInputError("expected one"), IllegalArgumentException),
        (RefusedError("cannot"), IllegalArgumentException),
        (NotFoundError("no table `t`", kind="table", name="t"), AnalysisException),
        (NotFoundError("no branch `b`", kind="ref", name="b"), IllegalArgumentException),
        (UnsupportedError("cannot"), UnsupportedOperationException),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BerglineError) else value.__name__,
)
def test_our_error_is_also_what_spark_users_catch(error: BerglineError, theirs: type[PySparkException]) -> None:
    with pytest.raises(theirs) as caught, spark_errors():
        raise error
    assert isinstance(caught.value, type(error))
    assert str(caught.value) == (f"[{error.condition}] {error}" if error.condition else str(error))
    assert caught.value.code == error.code  # type: ignore[attr-defined]
    assert type(caught.value).__name__ == type(error).__name__


@pytest.mark.parametrize(
    ("error", "condition"),
    [
        (SqlSyntaxError("expected FROM", line=1, column=8), "PARSE_SYNTAX_ERROR"),
        (NotFoundError("no table `t`", kind="table", name="t"), "TABLE_OR_VIEW_NOT_FOUND"),
        (NotFoundError("no view `v`", kind="view", name="v"), "VIEW_NOT_FOUND"),
        (NotFoundError("no column `c`", kind="column", name="c"), "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        (NotFoundError("no namespace `n`", kind="namespace", name="n"), "SCHEMA_NOT_FOUND"),
        (AlreadyExistsError("table `t` exists already", kind="table", name="t"), "TABLE_OR_VIEW_ALREADY_EXISTS"),
        (AlreadyExistsError("namespace `n` exists already", kind="namespace", name="n"), "SCHEMA_ALREADY_EXISTS"),
        (NotEmptyError("namespace `n` is not empty"), "SCHEMA_NOT_EMPTY"),
        (NotFoundError("no branch `b`", kind="ref", name="b"), None),
        (RefusedError("cannot"), None),
    ],
)
def test_our_error_has_the_condition_of_sparks_own(error: BerglineError, condition: str | None) -> None:
    with pytest.raises(PySparkException) as caught, spark_errors():
        raise error
    assert caught.value.getCondition() == condition
    assert (caught.value.getSqlState() is None) == (condition is None)


def test_class_and_sqlstate_go_by_the_condition_that_an_error_was_given() -> None:
    with pytest.raises(SparkRuntimeException) as caught, spark_errors():
        raise InvalidInputError("expected values, found a null", condition="NOT_NULL_ASSERT_VIOLATION")
    assert isinstance(caught.value, InvalidInputError)
    assert (caught.value.getCondition(), caught.value.getSqlState()) == ("NOT_NULL_ASSERT_VIOLATION", "42000")
    assert str(caught.value) == "[NOT_NULL_ASSERT_VIOLATION] expected values, found a null" == caught.value.getMessage()


def test_conditions_in_our_code_have_an_sqlstate() -> None:
    sources = Path(bergline.__file__).parent.rglob("*.py")
    named = {
        name for path in sources for name in re.findall(r'"([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)\.[A-Z_{]+', path.read_text())
    }
    assert named
    assert {name for name in named if name not in _SQL_STATES} == set()


def test_errors_that_spark_has_no_class_for_stay_ours() -> None:
    conflict = ConflictError("lost")
    assert spark_error(conflict) is conflict


def test_error_is_converted_once() -> None:
    twin = spark_error(InvalidInputError("expected one"))
    assert spark_error(twin) is twin
    assert type(spark_error(InvalidInputError("expected two"))) is type(twin)


@pytest.mark.parametrize(
    ("text", "hinted"),
    [
        ("Query [id = 1] terminated with exception: Python worker failed to connect back. SQLSTATE: XXKST", True),
        ("Timed out while waiting for the Python worker to connect back", True),
        ("Task failed while writing rows", False),
    ],
)
def test_python_that_does_not_answer_gets_a_hint(text: str, *, hinted: bool) -> None:
    def convert(java_exception: str) -> Exception:
        error = PySparkException(java_exception)
        error.__dict__.update(_desc=java_exception, _stackTrace="")  # as an exception has that comes from Java
        return error

    notes = getattr(with_busy_machines(convert)(text), "__notes__", [])
    assert [note.startswith("hint: Spark waits 10 s for a new Python process") for note in notes] == [True] * hinted
