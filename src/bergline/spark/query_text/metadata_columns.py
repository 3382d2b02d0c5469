"""From which tables a query selects `_file`, `_pos` and other metadata columns, and which `*` must exclude them.

An engine's frame has no hidden columns: those that a query names are added to it, and every `*` beside them gets an
EXCEPT. A name belongs to the tables of its own SELECT, or, if none fits, of the SELECT around it.
"""

from collections.abc import Mapping, Sequence

import msgspec

from bergline.format.schema.reserved import (
    DELETED,
    LAST_UPDATED_SEQUENCE_NUMBER,
    METADATA_COLUMNS,
    PARTITION,
    ROW_ID,
)
from bergline.quoting import back_quoted, back_quoted_path
from bergline.sql.names.resolve import Target
from bergline.sql.names.selector import CHANGES
from bergline.sql.queries.query import Query, TableUse
from bergline.sql.text.tokens import Edit, Token, TokenKind

_NAMES = (*METADATA_COLUMNS, PARTITION)
_LINEAGE = 3
_BEFORE_STAR = ("SELECT", "DISTINCT", "ALL")
_NO_ALIAS = (
    *("WHERE", "JOIN", "ON", "USING", "GROUP", "ORDER", "HAVING", "LIMIT", "UNION", "EXCEPT", "INTERSECT", "MINUS"),
    *("LEFT", "RIGHT", "FULL", "INNER", "CROSS", "NATURAL", "SEMI", "ANTI", "LATERAL", "TABLESAMPLE", "PIVOT"),
    *(
        "WINDOW",
        "QUALIFY",
        "SORT",
        "CLUSTER",
        "DISTRIBUTE",
        "OFFSET",
        "SELECT",
        "UNPIVOT",
        "FOR",
        "VERSION",
        "TIMESTAMP",
    ),
)


class MetadataColumns(msgspec.Struct, frozen=True):
    """The columns to add to tables, and the edits to the text."""

    columns: Mapping[TableUse, frozenset[str]]
    edits: tuple[Edit, ...]


def find_metadata_columns(query: Query, available: Mapping[TableUse, frozenset[str]]) -> MetadataColumns:
    """The metadata columns that a query names, out of those that each table has."""
    if not any(name in query.text.lower() for name in _NAMES):
        return MetadataColumns({}, ())
    tokens = query.sql.tokens
    blocks = _SelectScopes(tokens, list(available))
    columns: dict[TableUse, set[str]] = {}
    for place, token in enumerate(tokens):
        name = token.value.lower()
        if name in _NAMES and token.kind in {TokenKind.WORD, TokenKind.QUOTED}:
            for use in blocks.uses_for(place):
                if name in available[use]:
                    columns.setdefault(use, set()).add(name)
    if not columns:
        return MetadataColumns({}, ())
    edits = [
        edit for place, token in enumerate(tokens) if token.is_symbol("*") for edit in blocks.edits(place, columns)
    ]
    return MetadataColumns({use: frozenset(names) for use, names in columns.items()}, tuple(edits))


def metadata_columns(target: Target) -> frozenset[str]:
    """The metadata columns that can be selected from a table or its changes; other metadata tables have none."""
    if target.selector.metadata_table not in {None, CHANGES}:
        return frozenset()
    lineage = (
        (ROW_ID.name, LAST_UPDATED_SEQUENCE_NUMBER.name) if target.table.metadata.format_version < _LINEAGE else ()
    )
    deleted = () if target.selector.metadata_table is None else (DELETED.name,)
    return frozenset(_NAMES).difference(lineage, deleted, target.table.schema.names)


class _SelectScopes:
    """Each token's SELECT, and the tables of each SELECT by the names that they have in it."""

    def __init__(self, tokens: Sequence[Token], uses: Sequence[TableUse]) -> None:
        self._tokens = tokens
        self._block: list[int] = []
        self._parents: dict[int, int] = {}
        stack, last = [0], 0
        for token in tokens:
            if token.is_word("SELECT"):
                last += 1
                self._parents[last] = stack[-2] if len(stack) > 1 else 0
                stack[-1] = last
            self._block.append(stack[-1])
            if token.is_symbol("("):
                stack.append(stack[-1])
            elif token.is_symbol(")") and len(stack) > 1:
                stack.pop()
        starts = {token.start: place for place, token in enumerate(tokens)}
        self._uses: dict[int, list[tuple[str, TableUse]]] = {}
        for use in uses:
            if use.start in starts:
                self._uses.setdefault(self._block[starts[use.start]], []).append((self._alias(use), use))

    def uses_for(self, place: int) -> list[TableUse]:
        """The tables that the column name at this token can belong to."""
        qualifier = self._qualifier(place)
        block: int | None = self._block[place]
        while block is not None:
            found = [use for alias, use in self._uses.get(block, ()) if qualifier in {None, alias}]
            if found:
                return found
            block = self._parents.get(block)
        return []

    def edits(self, place: int, columns: Mapping[TableUse, set[str]]) -> list[Edit]:
        """The EXCEPT to add after a `*`, if it stands for columns."""
        before, after = self._tokens[place - 1], self._tokens[place + 1]
        if not (before.is_word(*_BEFORE_STAR) or before.is_symbol(",") or before.is_symbol(".")):
            return []
        qualifier = self._qualifier(place)
        found = [
            (alias, sorted(columns[use]))
            for alias, use in self._uses.get(self._block[place], ())
            if use in columns and qualifier in {None, alias}
        ]
        if not found:
            return []
        if qualifier is not None or len(found) == 1:
            names = ", ".join(back_quoted(name) for _, added in found for name in added)
        else:
            names = ", ".join(back_quoted_path((alias, name)) for alias, added in found for name in added)
        if after.is_word("EXCEPT") and self._tokens[place + 2].is_symbol("("):
            end = self._tokens[place + 2].end
            return [(end, end, f"{names}, ")]
        end = self._tokens[place].end
        return [(end, end, f" EXCEPT ({names})")]

    def _qualifier(self, place: int) -> str | None:
        """The name before the dot, as names of tables are compared."""
        if place >= 2 and self._tokens[place - 1].is_symbol("."):  # noqa: PLR2004
            return self._tokens[place - 2].value.casefold()
        return None

    def _alias(self, use: TableUse) -> str:
        if use.add_alias:
            return use.name[-1].casefold()
        after = [t for t in self._tokens if t.start >= use.end][:2]
        name = after[-1] if after[0].is_word("AS") else after[0]
        named = name.kind is TokenKind.QUOTED or (name.kind is TokenKind.WORD and not name.is_word(*_NO_ALIAS))
        return (name.value if named else use.name[-1]).casefold()
