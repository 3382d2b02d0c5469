"""Statements over the whole of Spark's grammar: what they give on tables of Spark's catalog, they give on lake tables.

A file of `statements/` is one test: its statements run in order, in a new session of each side. They are separated by
blank lines before text that is not indented; lines of these kinds before a statement say how it is run:

    --args {"x": 1}          with these arguments, in JSON
    --frames f: SELECT 1     with the DataFrame of a query as argument `f`
    --plain SELECT 2         Spark's side runs this instead, since Parquet tables have no such statement
    --plain nothing          Spark's side runs nothing, and the statement must succeed

Spark's side has database `plain_shop` where statements say `shop`, and `spark_catalog` for `lake`: what is passed to
Spark by mistake finds no table. Statements that are not equal are listed, with the reasons, in `known_differences.sql`,
and those that the table format decides in `format_differences.sql`; one that becomes equal has to leave the list.
"""

import contextlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import bergline
import bergline.spark
from bergline import Lake

pytestmark = pytest.mark.spark

HERE = Path(__file__).parent
FILES = sorted(path.stem for path in (HERE / "statements").glob("*.sql"))
QUERIES = (
    "aggregates",
    "ctes",
    "expressions",
    "grouping_sets",
    "hints",
    "joins",
    "lambdas",
    "lateral",
    "pipes",
    "pivots",
    "queries",
    "recursive_ctes",
    "sampling",
    "set_operations",
    "subqueries",
    "table_functions",
    "time_windows",
    "windows",
)
"""Files in which no statement needs another but the first: `make test` runs a third of each, `make thorough` all."""
SPARKS_NAMES = {"shop": "plain_shop", "lake": "spark_catalog", "grammar_extra": "plain_grammar_extra"}
TABLES = {"emp", "dept", "sale", "nums", "part", "doc"}
SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",  # most of the time would go into compiling
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@dataclass(frozen=True)
class Statement:
    """A statement of a file, and how it is run."""

    text: str
    args: str | None = None
    frames: tuple[tuple[str, str], ...] = ()
    plain: str | None = None

    @property
    def is_ordered(self) -> bool:
        """Whether the order of its rows is part of the result."""
        outside, before = self.text, None
        while outside != before:
            outside, before = re.sub(r"\([^()]*\)", " ", outside), outside
        return re.search(r"\b(ORDER|SORT|CLUSTER) BY\b", outside, re.IGNORECASE) is not None


def blocks(path: Path) -> list[str]:
    """The texts of a file that blank lines separate, without those that are comments alone."""
    found = re.split(r"\n\n+(?=\S)", path.read_text().strip())
    return [block for block in found if not all(line.startswith("-- ") for line in block.splitlines())]


def read_statement(block: str) -> Statement:
    lines = block.splitlines()
    said: dict[str, list[str]] = {"args": [], "frames": [], "plain": []}
    while (match := re.match(r"--(args|frames|plain) (.*)", lines[0])) is not None:
        said[match[1]].append(match[2])
        del lines[0]
    args = said["args"][0] if said["args"] else None
    frames = tuple((name, query) for name, query in (line.split(": ", 1) for line in said["frames"]))
    return Statement("\n".join(lines), args, frames, said["plain"][0] if said["plain"] else None)


def read_statements(name: str) -> list[Statement]:
    return [read_statement(block) for block in blocks(HERE / "statements" / f"{name}.sql")]


def unique_keys(statements: list[Statement]) -> list[str]:
    """What statements are called in the lists of differences: `SELECT 1 -- 2` is the second `SELECT 1` of its file."""
    found: list[str] = []
    for statement in statements:
        key = " ".join(statement.text.split())
        times = sum(other.split(" -- ")[0] == key for other in found)
        found.append(f"{key} -- {times + 1}" if times else key)
    return found


def differences(name: str) -> dict[str, str]:
    """The statements of a list of differences, with the reason of each: the line `--because …` before it."""
    found: dict[str, str] = {}
    reason = ""
    for block in blocks(HERE / f"{name}.sql"):
        lines = block.splitlines()
        if lines[0].startswith("--because "):
            reason = lines.pop(0).removeprefix("--because ")
        key = " ".join("\n".join(lines).split())
        assert key, f"a reason without a statement: {reason}"
        assert key not in found, f"listed twice: {key}"
        assert reason, f"no reason: {key}"
        found[key] = reason
    return found


class Side:
    """One of the two ways to run a statement, in a session of its own."""

    def __init__(self, spark: SparkSession, names: dict[str, str]) -> None:
        self._spark = spark
        self._names = names
        for key, value in SETTINGS.items():
            spark.conf.set(key, value)

    def run(self, statement: Statement) -> Any:
        """The columns and rows of a statement, or the condition of its error."""
        text = statement.text
        if self._names and statement.plain is not None:
            text = statement.plain
            if text == "nothing":
                return None
        try:
            frames = {name: self._spark.sql(self._own(query)) for name, query in statement.frames}
            args = None if statement.args is None else json.loads(self._own(statement.args))
            frame = self._spark.sql(self._own(text), args, **frames)
            rows = [self._alike(repr(tuple(row))) for row in frame.collect()]
        except PySparkException as error:
            return "refused", error.getCondition() or f"{type(error).__name__}: {str(error)[:120]}"
        except Py4JJavaError as error:  # PySpark has no class for some errors of Spark
            return "refused", str(error.java_exception.getCondition())
        columns = [f"{self._alike(field.name)} {field.dataType.simpleString()}" for field in frame.schema.fields]
        return columns, rows if statement.is_ordered else sorted(rows)

    def drop_others(self) -> None:
        """Drop what a file left beside the tables of all."""
        with contextlib.suppress(PySparkException):
            self._spark.sql("USE " + self._own("lake.shop"))
        for row in self._spark.sql("SHOW VIEWS IN " + self._own("shop")).collect():
            if not row.isTemporary:
                self._spark.sql(f"DROP VIEW {row.namespace}.{row.viewName}")
        for row in self._spark.sql("SHOW TABLES IN " + self._own("shop")).collect():
            if not row.isTemporary and row.tableName not in TABLES:
                self._spark.sql(f"DROP TABLE {row.namespace}.{row.tableName}")

    def _own(self, text: str) -> str:
        for name, own in self._names.items():
            text = re.sub(rf"\b{name}\b", own, text, flags=re.IGNORECASE)
        return text

    def _alike(self, text: str) -> str:
        for name, own in self._names.items():
            text = text.replace(own, name)
        return text


@pytest.fixture(scope="module")
def shop(spark_session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """The tables of all files, in a lake and in Spark's catalog."""
    statements = [Statement(block) for block in blocks(HERE / "tables.sql")]
    plain = spark_session.newSession()
    plain.sql("CREATE DATABASE plain_shop")
    with bergline.connect(f"sqlite:///{tmp_path_factory.mktemp('grammar')}/catalog.db", create=True) as lake:
        lake.create_namespace("shop")
        attached = bergline.spark.attach(spark_session.newSession(), lake, name="lake")
        for side in Side(plain, SPARKS_NAMES), Side(attached, {}):
            for statement in statements:
                assert side.run(statement) == ([], []), statement.text
        bergline.spark.detach(attached)
        yield lake
    plain.sql("DROP DATABASE plain_shop CASCADE")


@pytest.fixture
def sides(spark_session: SparkSession, shop: Lake) -> Iterator[tuple[Side, Side]]:
    """New sessions: one of Spark alone, and one with the lake."""
    attached = spark_session.newSession()
    sides = Side(spark_session.newSession(), SPARKS_NAMES), Side(attached, {})
    bergline.spark.attach(attached, shop, name="lake")
    yield sides
    for side in sides:
        side.drop_others()
    bergline.spark.detach(attached)


@pytest.mark.kinds(len(FILES))
@pytest.mark.parametrize(
    ("name", "step"),
    [
        *((name, 3 if name in QUERIES else 1) for name in FILES),
        *(pytest.param(name, 1, marks=pytest.mark.thorough) for name in QUERIES),
    ],
)
def test_statements_give_what_they_give_on_parquet(name: str, step: int, sides: tuple[Side, Side]) -> None:
    statements = read_statements(name)[::step]
    expected, found = ([side.run(statement) for statement in statements] for side in sides)
    keys = unique_keys(statements)
    different = {
        key: {"expected": one, "found": other}
        for key, one, other in zip(keys, expected, found, strict=True)
        if (other[0] == "refused" if one is None else one != other)
    }
    known = set(keys) & (differences("known_differences") | differences("format_differences")).keys()
    assert {key: both for key, both in different.items() if key not in known} == {}
    assert known - different.keys() == set(), "these are equal now: take them from the lists of differences"


def test_lists_of_differences_name_statements_that_are_run() -> None:
    keys = [key for name in FILES for key in unique_keys(read_statements(name))]
    assert len(keys) >= 500
    listed = (differences("known_differences") | differences("format_differences")).keys()
    assert {key: keys.count(key) for key in listed if keys.count(key) != 1} == {}, "expected in one file, once"
