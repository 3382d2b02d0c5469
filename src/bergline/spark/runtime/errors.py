"""Our errors as Spark users catch them: also instances of PySpark's matching class."""

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from pyspark.errors import (
    AnalysisException,
    IllegalArgumentException,
    ParseException,
    PySparkException,
    UnsupportedOperationException,
)

from bergline.errors import (
    AlreadyExistsError,
    BerglineError,
    InvalidInputError,
    NotEmptyError,
    NotFoundError,
    RefusedError,
    SqlSyntaxError,
    UnsupportedError,
)
from bergline.sql.names.resolve import Lakes, name_parts

_TWINS: dict[tuple[type[BerglineError], type[PySparkException]], type[BerglineError]] = {}
_NO_ANSWER: Final = re.compile("Python worker (failed )?to connect back")
_BUSY: Final = (
    "hint: Spark waits 10 s for a new Python process, and no setting changes that: the machine was too busy to start "
    "it in time. Run it again (a stream goes on from its checkpoint), with fewer processes beside it or more cores"
)
_VERSION_KINDS = {"ref", "snapshot"}
_CONDITIONS: dict[tuple[type[BerglineError], str], str] = {
    (NotFoundError, "table"): "TABLE_OR_VIEW_NOT_FOUND",
    (NotFoundError, "view"): "TABLE_OR_VIEW_NOT_FOUND",
    (NotFoundError, "column"): "COLUMN_NOT_FOUND",
    (NotFoundError, "namespace"): "SCHEMA_NOT_FOUND",
    (AlreadyExistsError, "table"): "TABLE_OR_VIEW_ALREADY_EXISTS",
    (AlreadyExistsError, "view"): "TABLE_OR_VIEW_ALREADY_EXISTS",
    (AlreadyExistsError, "column"): "COLUMN_ALREADY_EXISTS",
    (AlreadyExistsError, "namespace"): "SCHEMA_ALREADY_EXISTS",
}
"""Spark's conditions for errors about things of these kinds."""
_MISSING = {
    "SCHEMA_NOT_FOUND": "schemaName",
    "REQUIRES_SINGLE_PART_NAMESPACE": "namespace",
    "TABLE_OR_VIEW_NOT_FOUND": "relationName",
}
"""Errors that something is missing, and the parameter that has its name."""


@contextlib.contextmanager
def spark_errors() -> Iterator[None]:
    """Raise our errors in here as Spark users catch them; cause and traceback stay."""
    try:
        yield
    except BerglineError as error:
        raise spark_error(error) from error.__cause__


def with_busy_machines(convert: Callable[[Any], Exception]) -> Callable[[Any], Exception]:
    """PySpark's function that makes Python exceptions of Java's, with a hint where a Python process did not answer."""

    def converted(java_exception: Any) -> Exception:
        error = convert(java_exception)
        if _NO_ANSWER.search(f"{getattr(error, '_desc', '')}\n{getattr(error, '_stackTrace', '')}"):
            error.add_note(_BUSY)
        return error

    return converted


@contextlib.contextmanager
def near_names_noted(lakes: Lakes) -> Iterator[None]:
    """Errors of Spark that a table or namespace is missing name those of the lakes that may have been meant."""
    try:
        yield
    except AnalysisException as error:
        with contextlib.suppress(BerglineError):
            if not isinstance(error, BerglineError) and (near := _near_names(error, lakes)):
                error.add_note(f"hint: {_advice(error, near)}")
        raise


def _advice(error: AnalysisException, near: Sequence[str]) -> str:
    named = {".".join(name_parts(value)) for value in (error.getMessageParameters() or {}).values() if value in near}
    if named:
        return "statements of this kind do not see the tables of lakes yet"
    return f"did you mean {', '.join(f'`{name}`' for name in near)}?"


def _near_names(error: AnalysisException, lakes: Lakes) -> list[str]:
    parameter = _MISSING.get(error.getCondition() or "")
    name = name_parts((error.getMessageParameters() or {}).get(parameter, "")) if parameter else ()
    if parameter == "relationName":
        return [f"{namespace}.{name[-1]}" for namespace in lakes.near_namespaces(name[:-1])] if len(name) > 1 else []
    return list(lakes.near_namespaces(name[1:] if name[0] == "spark_catalog" else name)) if name else []


def spark_error(error: BerglineError) -> BerglineError:
    """The same error, also of the PySpark class that the official runtime would raise."""
    base = _pyspark_class(error)
    return error if base is None or isinstance(error, PySparkException) else _twin(error, base, _condition(error))


def analysis_error(error: BerglineError, condition: str) -> BerglineError:
    """The same error, also an AnalysisException with a condition of Spark's, which the message begins with."""
    error.message = f"[{condition}] {error.message}"
    return _twin(error, AnalysisException, condition)


def _twin(error: BerglineError, base: type[PySparkException], condition: str | None) -> BerglineError:
    key = (type(error), base)
    twin_class = _TWINS.setdefault(key, _make_twin(*key))
    twin = twin_class.__new__(twin_class)
    twin.__dict__.update(error.__dict__)
    twin.__dict__.update(_message=error.message, _errorClass=condition, _messageParameters={}, _contexts=[])
    twin.args = error.args
    return twin.with_traceback(error.__traceback__)


def _pyspark_class(error: BerglineError) -> type[PySparkException] | None:
    match error:
        case SqlSyntaxError():
            return ParseException
        case InvalidInputError() | RefusedError():
            return IllegalArgumentException
        case NotFoundError() | AlreadyExistsError():
            return IllegalArgumentException if error.kind in _VERSION_KINDS else AnalysisException
        case UnsupportedError():
            return UnsupportedOperationException
    return None


def _condition(error: BerglineError) -> str | None:
    """What Spark's own error is called, where it has the same."""
    match error:
        case SqlSyntaxError():
            return "PARSE_SYNTAX_ERROR"
        case NotEmptyError():
            return "SCHEMA_NOT_EMPTY"
        case NotFoundError() | AlreadyExistsError():
            return _CONDITIONS.get((type(error), error.kind))
    return None


def _make_twin(ours: type[BerglineError], theirs: type[PySparkException]) -> type[BerglineError]:
    return type(ours.__name__, (ours, theirs), {"__module__": ours.__module__, "__doc__": ours.__doc__})
