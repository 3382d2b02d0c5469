"""Iceberg's partition transforms as functions of a query, in expressions of Spark's own.

What a transform is depends on the type of its argument, which only the analyzer knows. So calls are first replaced by
ones of Spark's that take any type and have the type of the result; in the analyzed plan these say what they were given,
and make place for the transform.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from bergline import __version__
from bergline.errors import BerglineError, InvalidInputError
from bergline.spark.backends.classic.catalyst import class_of, scala_items
from bergline.spark.backends.classic.java_classes import scala_map, scala_object, session_facts
from bergline.spark.query_text.lake_functions import FUNCTION_PREFIX

_VALUE, _WIDTH = "bergline_value", "bergline_width"
_CALLED: Final = {
    "bucket": f"hash('{FUNCTION_PREFIX}bucket', {_WIDTH}, {_VALUE})",
    "truncate": f"if(isnull(hash('{FUNCTION_PREFIX}truncate', {_WIDTH}, {_VALUE})), {_VALUE}, {_VALUE})",
    "years": f"hash('{FUNCTION_PREFIX}years', {_VALUE})",
    "months": f"hash('{FUNCTION_PREFIX}months', {_VALUE})",
    "days": f"date_from_unix_date(hash('{FUNCTION_PREFIX}days', {_VALUE}))",
    "hours": f"hash('{FUNCTION_PREFIX}hours', {_VALUE})",
}
"""What takes the place of a call while Spark finds types."""
_ARGUMENTS: Final = {"bucket": 2, "truncate": 2, "years": 1, "months": 1, "days": 1, "hours": 1}
_NUMBERS: Final = ("tinyint", "smallint", "int")
_WHOLE: Final = (*_NUMBERS, "bigint")
_MOST_DIGITS: Final = 18
_NAMES: Final = (
    (re.compile(rf"date_from_unix_date\(hash\({FUNCTION_PREFIX}days, (.*?)\)\)"), r"days(\1)"),
    (re.compile(rf"\(IF\(\(hash\({FUNCTION_PREFIX}truncate, (.*?)\) IS NULL\), .*?\)\)"), r"truncate(\1)"),
    (re.compile(rf"hash\({FUNCTION_PREFIX}(\w+), "), r"\1("),
)

# Spark's hash starts from 42, and Iceberg's from 0: that is what 42 becomes by this number
_FROM_ZERO: Final = -1693959553
_UNDO_FIRST, _UNDO_SECOND = 2781581891, 2127672349
"""Inverses, modulo 2^32, of the factors with which a hash ends."""


def with_system_functions(plan: Any, spark: SparkSession) -> Any:
    """The plan with transforms in place of calls of functions that have our prefix; as it is if there are none."""
    calls = [call for call in _expressions(plan) if class_of(call) == "UnresolvedFunction" and _function(call)]
    if not calls:
        return plan
    called = scala_map(spark, [(call, _placeholder(call, spark)) for call in calls])
    session: Any = spark._jsparkSession  # noqa: SLF001
    analyzed_only = scala_object(spark, "org.apache.spark.sql.execution.CommandExecutionMode").SKIP()
    known = plan.transformAllExpressionsWithSubqueries(called)
    analyzed = session.sessionState().executePlan(known, analyzed_only).analyzed()
    typed = [(found, _transform(hashed, spark)) for found, hashed in _placed(analyzed)]
    return analyzed.transformAllExpressionsWithSubqueries(scala_map(spark, typed))


def _placed(plan: Any) -> Iterator[tuple[Any, Any]]:
    """The expressions that make place for transforms, each with the hash that has the arguments."""
    for expression in _expressions(plan):
        match class_of(expression):
            case "Murmur3Hash" if _marker(expression) not in {None, "truncate"}:
                yield expression, expression
            case "If" if class_of(expression.predicate()) == "IsNull":
                hashed = expression.predicate().child()
                if class_of(hashed) == "Murmur3Hash" and _marker(hashed) == "truncate":
                    yield expression, hashed


def with_plain_names(rows: DataFrame) -> DataFrame:
    """A frame whose columns are named by calls as they were written."""
    if not any(FUNCTION_PREFIX in name for name in rows.columns):
        return rows
    return rows.toDF(*map(_plain_name, rows.columns))


def _plain_name(name: str) -> str:
    for pattern, plain in _NAMES:
        name = pattern.sub(plain, name)
    return name


def _expressions(plan: Any) -> Iterator[Any]:
    """Every expression of a plan, and of the subqueries in it."""
    plans = [plan, *scala_items(plan.subqueriesAll())]
    while plans:
        node = plans.pop()
        plans += scala_items(node.children())
        pending = list(scala_items(node.expressions()))
        while pending:
            expression = pending.pop()
            yield expression
            pending += scala_items(expression.children())


def _function(call: Any) -> str | None:
    name = ".".join(str(part) for part in scala_items(call.nameParts())).lower()
    return name.removeprefix(FUNCTION_PREFIX) if name.startswith(FUNCTION_PREFIX) else None


def _marker(hashed: Any) -> str | None:
    first = next(iter(scala_items(hashed.children())))
    text = str(first.value()) if class_of(first) == "Literal" else ""
    return text.removeprefix(FUNCTION_PREFIX) if text.startswith(FUNCTION_PREFIX) else None


def _placeholder(call: Any, spark: SparkSession) -> Any:
    function, given = _function(call) or "", list(scala_items(call.arguments()))
    expected = _ARGUMENTS.get(function, 0)
    if len(given) != expected:
        raise _wrong(function, f"expected {expected} arguments, found {len(given)}")
    if not expected:
        return _parsed(f"'bergline {__version__}'", spark)
    return _filled(_CALLED[function], given, spark)


def _transform(hashed: Any, spark: SparkSession) -> Any:
    function = _marker(hashed) or ""
    _, *given = scala_items(hashed.children())
    types = [str(one.dataType().simpleString()) for one in given]
    if len(given) > 1 and types[0] not in _NUMBERS:
        raise _wrong(function, f"expected a number of tinyint, smallint or int first, found `{types[0]}`")
    text = _TRANSFORMS[function](types[-1])
    if text is None:
        raise _wrong(function, f"expected {_EXPECTED[function]}, found `{types[-1]}`")
    return _filled(text, given, spark)


def _filled(text: str, given: list[Any], spark: SparkSession) -> Any:
    """An expression with arguments in place of their names."""
    values = [(_parsed(_VALUE, spark), given[-1]), (_parsed(_WIDTH, spark), given[0])]
    return _parsed(text, spark).transform(scala_map(spark, values))


def _parsed(text: str, spark: SparkSession) -> Any:
    return session_facts(spark).parser.parseExpression(text)


def _wrong(function: str, what: str) -> BerglineError:
    message = f"{what} in `system.{function}`"
    return InvalidInputError(message, condition="DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE")


def _let(value: str, name: str, result: str) -> str:
    """An expression in which a name stands for a value, which is computed once."""
    return f"transform(array({value}), {name} -> {result})[0]"


def _times(name: str, factor: int) -> str:
    """A product modulo 2^32, by halves that cannot overflow."""
    return (
        f"((({name} & 65535) * {factor}L + shiftleft((shiftright({name}, 16) * {factor}L) & 65535L, 16)) & 4294967295L)"
    )


def _steps(value: str, *steps: str) -> str:
    """Steps one after the other, each of which says `h` for the result of the one before."""
    for step in steps:
        value = _let(value, "h", step)
    return value


def _hash_of_bytes(value: str) -> str:
    """Murmur3 of bytes: Spark's own differs in the last one to three, which are mixed in after undoing its end."""
    whole = "(length(b) - length(b) % 4)"
    tail = f"rpad(hex(substring(b, {whole} + 1)), 6, '0')"
    last = " + ".join(f"cast(conv(substring(t, {2 * i + 1}, 2), 16, 10) AS BIGINT) * {256**i}L" for i in range(3))
    mixed = _steps(
        _let(tail, "t", last),
        _times("h", 0xCC9E2D51),
        "((shiftleft(h, 15) | shiftright(h, 17)) & 4294967295L)",
        _times("h", 0x1B873593),
    )
    state = _steps(
        f"cast(hash({_FROM_ZERO}, substring(b, 1, {whole})) AS BIGINT) & 4294967295L",
        "h ^ shiftright(h, 16)",
        _times("h", _UNDO_SECOND),
        "h ^ shiftright(h, 13) ^ shiftright(h, 26)",
        _times("h", _UNDO_FIRST),
        f"h ^ shiftright(h, 16) ^ {whole}",
    )
    ended = _steps(
        f"({state}) ^ ({mixed}) ^ length(b)",
        "h ^ shiftright(h, 16)",
        _times("h", 0x85EBCA6B),
        "h ^ shiftright(h, 13)",
        _times("h", 0xC2B2AE35),
        "h ^ shiftright(h, 16)",
    )
    aligned = f"cast(hash({_FROM_ZERO}, b) AS BIGINT)"
    return _let(value, "b", f"CASE WHEN b IS NULL THEN NULL WHEN length(b) % 4 = 0 THEN {aligned} ELSE {ended} END")


def _unscaled(type_: str) -> tuple[int, int]:
    precision, scale = type_.removeprefix("decimal(").removesuffix(")").split(",")
    return int(precision), int(scale)


def _bucket(type_: str) -> str | None:
    if type_ in _WHOLE:
        hashed = f"hash({_FROM_ZERO}, cast({_VALUE} AS BIGINT))"
    elif type_ == "date":
        hashed = f"hash({_FROM_ZERO}, cast(unix_date({_VALUE}) AS BIGINT))"
    elif type_ in {"timestamp", "timestamp_ntz"}:
        hashed = f"hash({_FROM_ZERO}, {_VALUE})"
    elif type_ == "string":
        hashed = _hash_of_bytes(f"cast({_VALUE} AS BINARY)")
    elif type_ == "binary":
        hashed = _hash_of_bytes(_VALUE)
    elif type_.startswith("decimal"):
        precision, scale = _unscaled(type_)
        if precision > _MOST_DIGITS:
            raise _wrong("bucket", f"expected a decimal of at most {_MOST_DIGITS} digits, found `{type_}`")
        number = f"cast({_VALUE} * cast('1{'0' * scale}' AS DECIMAL({scale + 1}, 0)) AS BIGINT)"
        # the fewest bytes that hold the number and its sign, the highest first
        shortest = "regexp_replace(regexp_replace(x, '^(00)+(?=[0-7].)', ''), '^(FF)+(?=[89A-F].)', '')"
        digits = _let(f"lpad(hex({number}), 16, '0')", "x", shortest)
        hashed = _hash_of_bytes(f"unhex({digits})")
    else:
        return None
    # null is in no bucket, though it has a hash
    return f"if({_VALUE} IS NULL, NULL, cast((({hashed}) & 2147483647) % {_WIDTH} AS INT))"


def _truncate(type_: str) -> str | None:
    if type_ in _WHOLE:
        return f"cast({_VALUE} - pmod({_VALUE}, {_WIDTH}) AS {type_})"
    if type_ in {"string", "binary"}:
        return f"substring({_VALUE}, 1, {_WIDTH})"
    if type_.startswith("decimal"):
        _, scale = _unscaled(type_)
        unit = f"cast('1e-{scale}' AS DECIMAL({scale + 1}, {scale}))"
        return f"cast({_VALUE} - pmod({_VALUE}, cast({_WIDTH} AS DECIMAL(10, 0)) * {unit}) AS {type_})"
    return None


def _day(type_: str) -> str | None:
    """The date in UTC."""
    micros = f"unix_micros({_VALUE})"
    return {
        "date": _VALUE,
        "timestamp_ntz": f"cast({_VALUE} AS DATE)",
        "timestamp": f"date_from_unix_date(cast(({micros} - pmod({micros}, 86400000000L)) div 86400000000L AS INT))",
    }.get(type_)


def _of_day(text: str) -> Callable[[str], str | None]:
    return lambda type_: None if (day := _day(type_)) is None else text.format(day)


def _hours(type_: str) -> str | None:
    micros = f"unix_micros({_VALUE})"
    return {
        "timestamp_ntz": f"(unix_date(cast({_VALUE} AS DATE)) * 24 + hour({_VALUE}))",
        "timestamp": f"cast(({micros} - pmod({micros}, 3600000000L)) div 3600000000L AS INT)",
    }.get(type_)


_TRANSFORMS: Final[dict[str, Callable[[str], str | None]]] = {
    "bucket": _bucket,
    "truncate": _truncate,
    "years": _of_day("(year({0}) - 1970)"),
    "months": _of_day("((year({0}) - 1970) * 12 + month({0}) - 1)"),
    "days": _of_day("unix_date({0})"),
    "hours": _hours,
}
_EXPECTED: Final = {
    "bucket": "a date, tinyint, smallint, int, bigint, decimal, timestamp, string or binary",
    "truncate": "a tinyint, smallint, int, bigint, decimal, string or binary",
    "years": "a date or timestamp",
    "months": "a date or timestamp",
    "days": "a date or timestamp",
    "hours": "a timestamp",
}
