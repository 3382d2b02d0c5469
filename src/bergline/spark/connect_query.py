"""What a query over Spark Connect asks of its tables, as far as its text tells: no optimizer can be asked there.

Where a SELECT reads one table and nothing else, rows that its WHERE does not keep take part in nothing, whatever stands
around it. Tables that are joined, and conditions that come from further out, are not looked at.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import sqlglot
from sqlglot import exp

from bergline.expressions.predicate import Predicate
from bergline.format.schema import Schema
from bergline.spark.connect_conditions import is_plain_text, outline_of_text
from bergline.spark.plain_tests import PlainTests

_WITH_OTHER_ROWS = ("joins", "laterals", "pivots", "sample", "match", "connect", "prewhere")


class _Names(dict[str, str]):
    """Each name as it is, without its braces."""

    def __missing__(self, key: str) -> str:
        return key


def known_filters(text: str, schemas: Mapping[str, Schema]) -> dict[str, Predicate]:
    """For tables that stand as `{names}` in a text, what holds for all rows that it uses, where that is known."""
    if not is_plain_text(text):
        return {}
    try:
        tree = sqlglot.parse_one(text.format_map(_Names()), dialect="spark")
    except (sqlglot.errors.SqlglotError, RecursionError):
        return {}
    found = {}
    for name, alias, condition in _simple_reads(tree):
        if name in schemas:
            known = PlainTests(schemas[name], outline_of_text, alias).known_part(condition)
            if known is not None:
                found[name] = known
    return found


def _simple_reads(tree: Any) -> Iterator[tuple[str, str, Any]]:
    """Every SELECT with a WHERE on one table alone: the table, what its columns may be qualified by, the condition."""
    for select in tree.find_all(exp.Select):
        source, where = select.args.get("from_") or select.args.get("from"), select.args.get("where")
        if source is None or where is None or any(select.args.get(part) for part in _WITH_OTHER_ROWS):
            continue
        table = source.this
        if isinstance(table, exp.Table) and not any(v for k, v in table.args.items() if k not in {"this", "alias"}):
            yield table.name, table.alias_or_name, where.this
