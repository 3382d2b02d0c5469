"""Scripts, `BEGIN … END`, as Spark parses and interprets them.

Spark runs a script by itself. A statement that changes a lake is replaced by a command that calls back when Spark gets
to it; where others read tables of a lake, they read temporary views.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark users know)

from bergline.spark.backends.classic.catalyst import scala_items
from bergline.spark.backends.classic.parsed import frame_of, parse, read_plan, substituted
from bergline.spark.runtime.sql_backend import Script, ScriptStatement, TablePlace
from bergline.sql.text.tokens import SqlText

_BODY, _STATEMENT = "CompoundBody", "SingleStatement"


def read_script(sql: SqlText, spark: SparkSession) -> Script | None:
    """A script and its statements; None if the text is none, or if Spark refuses it."""
    try:
        plan = parse(sql.text, spark)
    except PySparkException:
        return None
    if plan.nodeName() != _BODY:
        return None
    return Script(plan, tuple(_read_statement(node, sql, spark) for node in _statements(plan)))


def _read_statement(node: Any, sql: SqlText, spark: SparkSession) -> ScriptStatement:
    text = str(node.getText())
    try:
        parse(text, spark)
    except PySparkException:
        return ScriptStatement(text, read_plan(node.parsedPlan(), sql, spark), is_condition=True)
    return ScriptStatement(text, read_plan(node.parsedPlan(), sql, spark), is_condition=False)


def run_script(
    script: Script,
    views: Mapping[int, Mapping[str, TablePlace]],
    change: Mapping[int, Callable[[], None]],
    args: Any,
    spark: SparkSession,
) -> DataFrame:
    """Run a script with views in place of tables, and with calls in place of statements, by their numbers."""
    context: Any = spark.sparkContext
    jvm, runner = context._jvm, _ScriptRunner(change)  # noqa: SLF001
    ensure_callback_server_started(context._gateway)  # type: ignore[no-untyped-call]  # noqa: SLF001
    command = jvm.org.apache.spark.sql.execution.command.ExternalCommandExecutor
    no_options = jvm.PythonUtils.toScalaMap({})
    plans: dict[int, Any] = {number: command(runner, str(number), no_options) for number in change}
    for number, places in views.items():
        parsed = script.statements[number].query.parsed
        plans[number] = substituted(parsed, places, {name: parse(f"TABLE {name}", spark) for name in places}, spark)
    values = {name: spark._jsparkSession.expression(F.lit(value)._jc) for name, value in (args or {}).items()}  # noqa: SLF001
    execution = jvm.org.apache.spark.sql.scripting.SqlScriptingExecution
    body = _with_plans(script.plan, plans, jvm)
    try:
        rows = execution.executeSqlScript(spark._jsparkSession, body, jvm.PythonUtils.toScalaMap(values))  # noqa: SLF001
    except (Py4JJavaError, PySparkException):
        if runner.error is not None:
            raise runner.error from None
        raise
    return frame_of(rows, spark)


class _ScriptRunner:
    """What Spark calls when it gets to a statement that is run here; `error` is why one failed."""

    def __init__(self, change: Mapping[int, Callable[[], None]]) -> None:
        self._change = change
        self.error: Exception | None = None

    def executeCommand(self, command: str, _: Any) -> Any:  # noqa: N802  (Spark's name)
        """Run a statement by its number."""
        try:
            self._change[int(command)]()
        except Exception as error:
            self.error = error
            raise
        gateway: Any = SparkContext._gateway  # noqa: SLF001
        return gateway.new_array(gateway.jvm.java.lang.String, 0)

    def equals(self, other: Any) -> bool:
        """Spark compares parts of plans: Py4J asks here."""
        return self is other

    def hashCode(self) -> int:  # noqa: N802
        """A number of 32 bits."""
        return id(self) % 2**31

    def toString(self) -> str:  # noqa: N802
        """What plans show."""
        return "bergline"

    class Java:
        """What Py4J lets Spark call."""

        implements = ("org.apache.spark.sql.connector.ExternalCommandRunner",)


def _statements(node: Any) -> Iterator[Any]:
    """The statements of a script, of its conditions and handlers too, in one order."""
    if node.nodeName() == _STATEMENT:
        yield node
        return
    for part in _parts(node):
        yield from _statements(part)


def _parts(node: Any) -> list[Any]:
    handlers = scala_items(node.handlers()) if node.nodeName() == _BODY else ()
    return [*scala_items(node.children()), *handlers]


def _with_plans(plan: Any, plans: Mapping[int, Any], jvm: Any) -> Any:
    """The script with other plans for some of its statements."""
    numbers = iter(range(sum(1 for _ in _statements(plan))))
    origin = getattr(getattr(jvm.org.apache.spark.sql.catalyst.trees, "CurrentOrigin$"), "MODULE$")

    def changed(node: Any) -> Any:
        if node.nodeName() == _STATEMENT:
            number = next(numbers)
            return node.copy(plans[number]) if number in plans else node
        parts = [changed(part) for part in _parts(node)]
        children = node.withNewChildren(jvm.PythonUtils.toSeq(parts[: node.children().size()]))
        handlers = parts[node.children().size() :]
        if not handlers:
            return children
        to_seq = jvm.PythonUtils.toSeq
        body = children.collection(), children.label(), children.isScope(), to_seq(handlers), children.conditions()
        return children.copy(*body)

    origin.set(plan.origin())
    try:
        return changed(plan)
    finally:
        origin.reset()
