"""The tables and long column names of a query that sqlglot has read, with where they stand in its text."""

import re
from collections.abc import Sequence
from itertools import pairwise, takewhile
from typing import Literal

import msgspec
from sqlglot import exp

from bergline.sql.statements.statements import AsOf, Name, Query, TableUse
from bergline.sql.text.tokens import Token, TokenKind


def read_query(text: str, tree: exp.Expr, tokens: list[Token], clauses: list[tuple[int, int, AsOf]]) -> Query:
    """What the query reads; clauses are those of time travel, which the tree does not have."""
    by_start = {start: (end, as_of) for start, end, as_of in clauses}
    following = {a.end: b for a, b in pairwise(tokens)}
    uses = []
    for table in tree.find_all(exp.Table):
        if not _stands_in(text, table.parts) or (len(table.parts) == 1 and not _may_be_table(table)):
            continue
        spans = [part.meta for part in table.parts]
        start, end = spans[0]["start"], spans[-1]["end"] + 1
        after = following.get(end)
        clause_end, as_of = by_start.get(after.start, (end, None)) if after else (end, None)
        version = table.args.get("version")
        if as_of is None and version is not None:
            as_of = AsOf("timestamp" if version.name == "TIMESTAMP" else "version", None)
        add_alias = not table.alias and not table.args.get("sample")
        uses.append(TableUse(tuple(p.name for p in table.parts), start, clause_end, as_of, add_alias))
    uses = _told_apart(uses, tree)
    return Query(text, tuple(sorted(uses, key=lambda u: u.start)), _long_columns(text, tree))


def _told_apart(uses: Sequence[TableUse], tree: exp.Expr) -> list[TableUse]:
    """The tables with the aliases that keep them apart from whatever else has the last part of their name."""
    called: list[tuple[str, Name | None]] = [(alias.name.casefold(), None) for alias in tree.find_all(exp.TableAlias)]
    called += [(use.name[-1].casefold(), _folded(use.name)) for use in uses if use.add_alias]
    qualifiers = {_all_parts(column)[0].name.casefold() for column in tree.find_all(exp.Column) if column.table}

    def alias(use: TableUse) -> Literal["last", "whole", "unclear"]:
        last, name = use.name[-1].casefold(), _folded(use.name)
        if all(other == name for known, other in called if known == last):
            return "last"
        return "unclear" if last in qualifiers or called.count((last, name)) > 1 else "whole"

    return [msgspec.structs.replace(use, alias=alias(use)) if use.add_alias else use for use in uses]


def _folded(name: Name) -> Name:
    return tuple(part.casefold() for part in name)


def _may_be_table(table: exp.Table) -> bool:
    """Whether a name of one part can be a table: not a function, nor a query that WITH gave this name."""
    if not isinstance(table.this, exp.Identifier):
        return False
    node: exp.Expr = table
    while (parent := node.parent) is not None:
        if any(query.alias.casefold() == table.name.casefold() for query in _named_before(node, parent)):
            return False
        node = parent
    return True


def _named_before(node: exp.Expr, parent: exp.Expr) -> list[exp.Expr]:
    """The queries that WITH names and that a part of a statement sees: inside WITH, those before it."""
    if isinstance(node, exp.With):
        return []
    clause = parent if isinstance(parent, exp.With) else parent.args.get("with_")
    if not isinstance(clause, exp.With):
        return []
    if clause is not parent or clause.args.get("recursive"):
        return list(clause.expressions)
    return list(takewhile(lambda query: query is not node, clause.expressions))


def _stands_in(text: str, parts: Sequence[exp.Expr]) -> bool:
    """Whether names stand in the text where sqlglot says; inside hints its offsets count from the hint's start."""
    return all(
        "start" in p.meta and text[p.meta["start"] : p.meta["end"] + 1].strip("`").replace("``", "`") == p.name
        for p in parts
    ) and not any(p.find_ancestor(exp.Hint) for p in parts[:1])


def _long_columns(text: str, tree: exp.Expr) -> tuple[tuple[Name, tuple[int, ...]], ...]:
    """Columns like `db.orders.id`, which may begin with a table's name."""
    found = []
    for column in tree.find_all(exp.Column):
        parts = _all_parts(column)
        if len(parts) > 2 and _stands_in(text, parts):  # noqa: PLR2004
            found.append((tuple(p.name for p in parts), tuple(p.meta["start"] for p in parts)))
    return tuple(found)


def _all_parts(column: exp.Column) -> list[exp.Expr]:
    """The parts of a column and of the struct fields behind it."""
    parts = list(column.parts)
    node: exp.Expr = column
    while isinstance(node.parent, exp.Dot) and node.parent.this is node:
        node = node.parent
        parts.append(node.expression)
    return parts


_LOOSE_NAME = re.compile(r"(?:\w+|`[^`]+`)(?:\.(?:\w+|`[^`]+`))+")


def dotted_names(tokens: list[Token]) -> tuple[Name, ...]:
    """Every name of two or more parts in the text."""
    names: list[Name] = []
    parts: list[str] = []
    expects_part = True
    for token in tokens:
        is_part = token.kind in {TokenKind.WORD, TokenKind.QUOTED}
        if is_part and expects_part:
            parts.append(token.value)
            expects_part = False
        elif token.is_symbol(".") and parts and not expects_part:
            expects_part = True
        else:
            names += [tuple(parts)] if len(parts) > 1 else []
            parts = [token.value] if is_part else []
            expects_part = not is_part
    return tuple(names)


def loose_names(text: str) -> tuple[Name, ...]:
    """What could be names in text that has no tokens."""
    return tuple(tuple(part.strip("`") for part in name.split(".")) for name in _LOOSE_NAME.findall(text))
