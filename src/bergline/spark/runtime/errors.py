"""Our errors as Spark users catch them: also instances of PySpark's matching class."""

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from pyspark.errors import (
    AnalysisException,
    IllegalArgumentException,
    NumberFormatException,
    ParseException,
    PySparkException,
    SparkRuntimeException,
    UnsupportedOperationException,
)

from bergline.errors import (
    AlreadyExistsError,
    BerglineError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    UnsupportedError,
)
from bergline.sql.names.resolve import Lakes, name_parts

_TWINS: dict[tuple[type[BerglineError], type[PySparkException]], type[BerglineError]] = {}
_NO_ANSWER: Final = re.compile("Python worker (failed )?to connect back")
_BUSY: Final = (
    "hint: Spark waits 10 s for a new Python process, and no setting changes that: the machine was too busy to start "
    "it in time. Run it again (a stream goes on from its checkpoint), with fewer processes beside it or more cores"
)
_PLAIN_KINDS = {"ref", "snapshot", "partition field"}
"""What only Iceberg has: its runtime raises IllegalArgumentException for it."""
_SQL_STATES = {
    "CANNOT_UPDATE_FIELD": "0A000",
    "CANNOT_UP_CAST_DATATYPE": "42846",
    "CAST_INVALID_INPUT": "22018",
    "COLUMN_ALREADY_EXISTS": "42711",
    "CREATE_VIEW_COLUMN_ARITY_MISMATCH": "21S01",
    "DATATYPE_MISMATCH": "42K09",
    "DUPLICATE_KEY": "23505",
    "DUPLICATE_ROUTINE_PARAMETER_ASSIGNMENT": "4274K",
    "FAILED_TO_LOAD_ROUTINE": "38000",
    "FIELD_ALREADY_EXISTS": "42710",
    "FIELD_NOT_FOUND": "42704",
    "INCOMPATIBLE_DATA_FOR_TABLE": "KD000",
    "INCOMPATIBLE_VIEW_SCHEMA_CHANGE": "51024",
    "INSERT_COLUMN_ARITY_MISMATCH": "21S01",
    "INVALID_FIELD_NAME": "42000",
    "INVALID_NON_DETERMINISTIC_EXPRESSIONS": "42K0E",
    "INVALID_PARTITION_OPERATION": "42601",
    "INVALID_TEMP_OBJ_REFERENCE": "42K0F",
    "INVALID_TIME_TRAVEL_TIMESTAMP_EXPR": "42K0E",
    "MERGE_CARDINALITY_VIOLATION": "23K01",
    "NON_PARTITION_COLUMN": "42000",
    "NOT_NULL_ASSERT_VIOLATION": "42000",
    "NOT_SUPPORTED_CHANGE_COLUMN": "0A000",
    "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE": "0A000",
    "PARSE_SYNTAX_ERROR": "42601",
    "RECURSIVE_VIEW": "42K0H",
    "REQUIRED_PARAMETER_NOT_FOUND": "4274K",
    "SCHEMA_ALREADY_EXISTS": "42P06",
    "SCHEMA_NOT_EMPTY": "2BP01",
    "SCHEMA_NOT_FOUND": "42704",
    "TABLE_OR_VIEW_ALREADY_EXISTS": "42P07",
    "TABLE_OR_VIEW_NOT_FOUND": "42P01",
    "UNEXPECTED_POSITIONAL_ARGUMENT": "4274K",
    "UNRECOGNIZED_PARAMETER_NAME": "4274K",
    "UNRESOLVED_COLUMN": "42703",
    "UNSUPPORTED_DATATYPE": "0A000",
    "UNSUPPORTED_FEATURE": "0A000",
    "UNSUPPORTED_MERGE_CONDITION": "42K0E",
    "VIEW_ALREADY_EXISTS": "42P07",
    "VIEW_NOT_FOUND": "42P01",
    "WRONG_NUM_ARGS": "42605",
}
"""By the conditions of Spark that our errors have, without what follows a dot."""
_CLASSES: dict[str, type[PySparkException]] = {
    "CAST_INVALID_INPUT": NumberFormatException,
    "DUPLICATE_KEY": ParseException,
    "MERGE_CARDINALITY_VIOLATION": SparkRuntimeException,
    "NOT_NULL_ASSERT_VIOLATION": SparkRuntimeException,
    "PARSE_SYNTAX_ERROR": ParseException,
    "UNSUPPORTED_DATATYPE": ParseException,
    "UNSUPPORTED_FEATURE.SET_TABLE_PROPERTY": ParseException,
}
"""What Spark raises with a condition, where it is no AnalysisException."""
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
    """The same error, also of the PySpark class that Spark or the official runtime would raise.

    What Spark has a condition for begins with it, as all of Spark's messages do.
    """
    base = _pyspark_class(error)
    if base is None or isinstance(error, PySparkException):
        return error
    key = (type(error), base)
    twin_class = _TWINS.setdefault(key, _make_twin(*key))
    twin = twin_class.__new__(twin_class)
    twin.__dict__.update(error.__dict__)
    if error.condition is not None:
        twin.message = f"[{error.condition}] {error.message}"
    twin.__dict__.update(_message=error.message, _errorClass=error.condition, _messageParameters={}, _contexts=[])
    twin.args = error.args
    return twin.with_traceback(error.__traceback__)


def _pyspark_class(error: BerglineError) -> type[PySparkException] | None:
    match error:
        case BerglineError(condition=str(condition)):
            return _CLASSES.get(condition, AnalysisException)
        case InvalidInputError() | RefusedError():
            return IllegalArgumentException
        case NotFoundError() | AlreadyExistsError():
            return IllegalArgumentException if error.kind in _PLAIN_KINDS else AnalysisException
        case UnsupportedError():
            return UnsupportedOperationException
    return None


def _make_twin(ours: type[BerglineError], theirs: type[PySparkException]) -> type[BerglineError]:
    methods = {"getSqlState": _sql_state, "getMessage": BerglineError.__str__}
    return type(ours.__name__, (ours, theirs), {"__module__": ours.__module__, "__doc__": ours.__doc__} | methods)


def _sql_state(twin: BerglineError) -> str | None:
    return None if twin.condition is None else _SQL_STATES.get(twin.condition.partition(".")[0])
