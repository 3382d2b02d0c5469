"""Statements as Spark's own parser reads them: the tables in them, and the same statement with frames in their place.

Spark analyzes the very plan that it parsed, so every part of the user's text keeps its place and meaning. Spark itself
replaces the nodes, in subqueries too: its `transform` methods take a partial function, and a Scala map is one, so one
call replaces all tables, without a call back to Python for each node.
Why: docs/decisions/0016-spark-parses-its-own-language.md
"""

import re
import weakref
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark users know)
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from bergline.spark.backends.classic.catalyst import class_of, scala_items, scala_seq
from bergline.spark.backends.classic.java_classes import (
    new_object,
    scala_map,
    scala_object,
    session_facts,
    static_member,
    table_alias,
)
from bergline.spark.backends.classic.pushed_filters import placeholder_number
from bergline.spark.runtime.sql_backend import TablePlace
from bergline.sql.queries.query import AsOf, OtherStatement, Query, TableUse
from bergline.sql.queries.time_travel import time_travel_clauses
from bergline.sql.text.names import dotted_names, parse_name
from bergline.sql.text.tokens import Name, SqlText

_PRIVILEGES = "__required_write_privileges__"
"""What Spark notes on the table that a statement changes."""
_RELATION, _TIME_TRAVEL = "UnresolvedRelation", "RelationTimeTravel"
_CREATED = {
    "CreateView": "CREATE VIEW",
    "CreateViewCommand": "CREATE VIEW",
    "CreateUserDefinedFunction": "CREATE FUNCTION",
}
_WRITING = ("CREATE", "SET", "DECLARE", "CACHE", "REPLACE")
_WRITING_ANYWHERE = ("INSERT", "UPDATE", "DELETE", "MERGE")
_PLAIN_NAME = re.compile(r"\w+(\.\w+)*")
# What Spark prints of a node comes in one call; asking the node for each of its parts takes several. Where the text
# does not match, as with unusual names, options or streams, the node is asked.
_PLAIN_RELATION = re.compile(rf"'UnresolvedRelation \[(\w+(?:, \w+)*)\], \[(?:{_PRIVILEGES}=[A-Z,]+)?\], false")
_PLAIN_ORIGIN = re.compile(r"Origin\(Some\(\d+\),Some\(\d+\),Some\((\d+)\),Some\((\d+)\),")
_MOST_FIELDS = 25
_STAR, _SUBQUERIES = "UnresolvedStarExceptOrReplace", ("ScalarSubquery", "Exists", "ListQuery")
_ALIAS = "org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias"
_DATASET = "org.apache.spark.sql.classic.Dataset"
# analyzed plans of frames that live; weak, so that they go with their frames
_PLANS: "weakref.WeakKeyDictionary[DataFrame, Any]" = weakref.WeakKeyDictionary()


class ParsedStatement(msgspec.Struct, frozen=True):
    """A plan that is not analyzed yet, and the nodes of the tables in it, in the order of the query's."""

    plan: Any
    nodes: Sequence[Any]
    stars: Sequence[Any] = ()
    """Of `|> SET`: see `_set_stars`."""


def read_parsed(sql: SqlText, spark: SparkSession) -> Query | OtherStatement:
    """The tables of a statement, by Spark's parser; a text that it refuses is left to Spark, which says why."""
    try:
        plan = parse(sql.text, spark)
    except PySparkException:
        return OtherStatement(sql.first_word, (), leave_to_engine=True)
    if sql.first_word == "CREATE" and not str(plan.nodeName()).endswith("TableAsSelect"):
        return OtherStatement(_CREATED.get(plan.nodeName(), "CREATE"), dotted_names(sql))
    return read_plan(plan, sql, spark)


def read_plan(plan: Any, sql: SqlText, spark: SparkSession) -> Query:
    """The tables of a statement, or of one that stands in a longer text, by its plan."""
    plan = _cte_substitution(spark).apply(plan)  # or else names of WITH's queries would be taken for tables
    clauses = {start: (end, as_of) for start, end, as_of in time_travel_clauses(sql)}
    stars = _set_stars(plan, sql.text)
    inside = [subquery.plan() for star in stars for subquery in _subqueries(star)]
    relations = [relation for part in (plan, *inside) for relation in _relations(part, sql.text)]
    found = sorted(relations, key=lambda relation: relation.use.start)
    uses = tuple(_with_clause(r.use, r.node, sql, clauses) if r.travels else r.use for r in found)
    parsed = ParsedStatement(plan, [relation.node for relation in found], stars)
    writes = sql.first_word in _WRITING or sql.has_word(*_WRITING_ANYWHERE)
    return Query(sql, uses, writes=writes, parsed=parsed)


def read_named(text: str, names: Collection[str], spark: SparkSession) -> tuple[ParsedStatement, dict[str, int]]:
    """A text in which tables stand by names of their own, and the number of each of these."""
    plan = _cte_substitution(spark).apply(parse(text, spark))
    nodes = [(node, use.name[0]) for node, use, _ in _relations(plan, text) if use.name[0] in names]
    numbers = {name: number for number, (_, name) in enumerate(nodes)}
    return ParsedStatement(plan, [node for node, _ in nodes]), numbers


def substituted(
    parsed: ParsedStatement, places: Mapping[str, TablePlace], rows: Mapping[str, Any], spark: SparkSession
) -> Any:
    """The plan with other plans in place of tables."""
    replaced = [
        (parsed.nodes[number], new_object(spark, _ALIAS, table_alias(spark, name), rows[source]))
        for source, (numbers, name) in places.items()
        for number in numbers
    ]
    tables = scala_map(spark, replaced)
    if not parsed.stars:
        return parsed.plan.transformWithSubqueries(tables)
    stars = scala_map(spark, [(star, _with_tables(star, tables, spark)) for star in parsed.stars])
    return parsed.plan.transformAllExpressionsWithSubqueries(stars).transformWithSubqueries(tables)


def qualified(rows: DataFrame, name: Name) -> DataFrame:
    """A frame whose columns may be qualified by a name of several parts, or by some of these from the end."""
    spark = rows.sparkSession
    return frame_of(new_object(spark, _ALIAS, table_alias(spark, name), analyzed(rows)), spark)


def counting_as(plan: Any, columns: Any, spark: SparkSession) -> Any:
    """A plan whose first columns have the ids of another's columns; the rest stay as they are.

    Spark resolves columns to ids when it analyzes a plan. The plan around a placeholder was analyzed before its files
    were known, so the frame that takes its place must answer to the ids that the placeholder's columns had.
    """
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001  (what a column counts as cannot be said in public words)
    catalyst = jvm.org.apache.spark.sql.catalyst
    sequence, nothing = jvm.PythonUtils.toSeq, jvm.scala.Option.empty()
    found, same = list(scala_items(plan.output())), list(scala_items(columns))
    named = [
        catalyst.expressions.Alias(column, column.name(), other.exprId(), sequence([]), nothing, sequence([]))
        for column, other in zip(found, same, strict=False)
    ]
    return catalyst.plans.logical.Project(sequence([*named, *found[len(same) :]]), plan)


def with_files(rows: DataFrame, found: Mapping[int, DataFrame]) -> DataFrame:
    """The same rows with other frames in place of placeholders, by their numbers."""
    spark, plan = rows.sparkSession, analyzed(rows)
    plans = {number: analyzed(frame) for number, frame in found.items()}
    replaced = []
    for part in (plan, *scala_items(plan.subqueriesAll())):
        for leaf in scala_items(part.collectLeaves()):
            number = placeholder_number(leaf)
            if number in plans:
                replaced.append((leaf, counting_as(plans[number], leaf.output(), spark)))
    return frame_of(plan.transformWithSubqueries(scala_map(spark, replaced)), spark)


def with_arguments(plan: Any, args: Any, spark: SparkSession) -> Any:
    """The plan with the values of its parameters, by name or by position."""
    if not args:
        return plan
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001
    analysis, to_seq = jvm.org.apache.spark.sql.catalyst.analysis, jvm.PythonUtils.toSeq
    session: Any = spark._jsparkSession  # noqa: SLF001
    columns = [F.lit(value) for value in (args.values() if isinstance(args, dict) else args)]
    values = [session.expression(column._jc) for column in columns]  # noqa: SLF001
    if isinstance(args, dict):
        return analysis.NameParameterizedQuery(plan, to_seq(list(args)), to_seq(values))
    return analysis.PosParameterizedQuery(plan, to_seq(values))


def headed(plan: Any, head: str, spark: SparkSession) -> Any:
    """The statement that has a plan after `EXPLAIN …` or `DESCRIBE QUERY`."""
    if not head:
        return plan
    command = parse(f"{head} SELECT 1", spark)  # Spark's own node for the head, around any query
    if command.nodeName() == "ExplainCommand":
        return command.copy(plan, command.mode())
    return command.copy(command.queryText(), plan)


def analyzed(frame: DataFrame) -> Any:
    """The plan of a frame, asked for once if the frame has its files already."""
    plan = _PLANS.get(frame)
    if plan is None:
        plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001
        if type(frame) is ClassicDataFrame:  # a late frame has another plan once its files are looked up
            _PLANS[frame] = plan
    return plan


def frame_of(plan: Any, spark: SparkSession, within: Any = None) -> DataFrame:
    """A plan as Spark analyzes it, run at once if it is a command; within a clone of the session, if one is given."""
    session: Any = spark._jsparkSession if within is None else within  # noqa: SLF001
    return ClassicDataFrame(static_member(spark, _DATASET, "ofRows")(session, plan), spark)


def parse(text: str, spark: SparkSession) -> Any:
    """The plan of a statement, which is not analyzed yet."""
    return session_facts(spark).parser.parsePlan(text)


def _cte_substitution(spark: SparkSession) -> Any:
    """Spark's rule that gives queries of WITH their places: what is left has the names of tables and views."""
    return scala_object(spark, "org.apache.spark.sql.catalyst.analysis.CTESubstitution")


def _set_stars(plan: Any, text: str) -> list[Any]:
    """The stars of `|> SET y = (SELECT …)`, which hold their new values where no walk over subqueries looks."""
    if "|>" not in text:
        return []
    found, pending = [], [plan, *scala_items(plan.subqueriesAll())]
    while pending:
        node = pending.pop()
        found += [e for e in scala_items(node.expressions()) if class_of(e) == _STAR and e.replacements().isDefined()]
        pending += scala_items(node.children())
    return found


def _subqueries(star: Any) -> Iterator[Any]:
    pending = list(scala_items(star.replacements().get()))
    while pending:
        value = pending.pop()
        if class_of(value) in _SUBQUERIES:
            yield value
        pending += scala_items(value.children())


def _with_tables(star: Any, tables: Any, spark: SparkSession) -> Any:
    """The star with other plans in place of the tables in its values."""
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001
    new = [(query, query.withNewPlan(query.plan().transformWithSubqueries(tables))) for query in _subqueries(star)]
    queries = scala_map(spark, new)
    values = [value.transform(queries) for value in scala_items(star.replacements().get())]
    return star.copy(star.target(), star.excepts(), jvm.scala.Some(jvm.PythonUtils.toSeq(values)))


class _FoundRelation(NamedTuple):
    """A table in a plan, and whether it has a time travel clause."""

    node: Any
    use: TableUse
    travels: bool


def _relations(plan: Any, text: str) -> Iterator[_FoundRelation]:
    for part in (plan, *scala_seq(plan.subqueriesAll())):
        for leaf in scala_seq(part.collectLeaves()):
            said = str(leaf.simpleString(_MOST_FIELDS))
            if said.startswith(f"'{_RELATION} "):
                yield _FoundRelation(leaf, _plain_use(leaf, said, text) or _use(leaf), False)
            elif leaf.nodeName() == _TIME_TRAVEL:
                yield _FoundRelation(leaf, _use(leaf.relation()), True)


def _plain_use(relation: Any, said: str, text: str) -> TableUse | None:
    """A table without options, by what Spark says of it; None if that leaves a doubt about its name."""
    found = _PLAIN_RELATION.fullmatch(said)
    if found is None:
        return None
    start, end = _span(relation)
    name = tuple(found[1].split(", "))
    return TableUse(name, start, end, None, add_alias=False) if text[start:end] == ".".join(name) else None


def _use(relation: Any) -> TableUse:
    start, end = _span(relation)
    options = relation.options()
    keys = [] if options.isEmpty() else options.keySet().toArray()
    given = [(str(key), str(options.get(key))) for key in keys if key != _PRIVILEGES]
    text = str(relation.tableName())
    name = tuple(text.split(".")) if _PLAIN_NAME.fullmatch(text) else parse_name(text, "a table name")
    return TableUse(
        name, start, end, None, add_alias=False, options=tuple(given), is_stream=bool(relation.isStreaming())
    )


def _with_clause(use: TableUse, node: Any, sql: SqlText, clauses: Mapping[int, tuple[int, AsOf]]) -> TableUse:
    """The table with what its time travel clause says."""
    start, end = _span(node)
    if start in clauses:
        return msgspec.structs.replace(use, end=clauses[start][0], as_of=clauses[start][1])
    version, moment = node.version(), node.timestamp()
    as_of = (
        AsOf("version", str(version.get()))
        if version.isDefined()
        else AsOf("timestamp", None, sql.part(*_span(moment.get())))
    )
    return msgspec.structs.replace(use, end=end, as_of=as_of)


def _span(node: Any) -> tuple[int, int]:
    """Where a node stands in the text."""
    origin = node.origin()
    found = _PLAIN_ORIGIN.match(str(origin.toString()))
    if found is not None:
        return int(found[1]), int(found[2]) + 1
    return int(origin.startIndex().get()), int(origin.stopIndex().get()) + 1
