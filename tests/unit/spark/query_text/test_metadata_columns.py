"""Metadata columns that a query names, and the stars that must leave them out."""

import pytest

from bergline.spark.query_text.metadata_columns import find_metadata_columns
from bergline.sql.queries.query import Query
from bergline.sql.queries.rewritten import rewrite_query
from support.fixtures.sql_statements import meaning

ALL = frozenset({"_file", "_pos", "_partition"})


@pytest.mark.parametrize(
    ("text", "asked", "expected"),
    [
        ("SELECT * FROM db.t", {}, "SELECT * FROM {t0} AS `t`"),
        ("SELECT _file, * FROM db.t", {0: "_file"}, "SELECT _file, * EXCEPT (`_file`) FROM {t0} AS `t`"),
        ("SELECT x.*, `_pos` FROM db.t x", {0: "_pos"}, "SELECT x.* EXCEPT (`_pos`), `_pos` FROM {t0} x"),
        (
            "SELECT * FROM db.t WHERE _POS < 2 * 3",
            {0: "_pos"},
            "SELECT * EXCEPT (`_pos`) FROM {t0} AS `t` WHERE _POS < 2 * 3",
        ),
        ("SELECT count(*), max(_pos) FROM db.t", {0: "_pos"}, "SELECT count(*), max(_pos) FROM {t0} AS `t`"),
        (
            "SELECT * EXCEPT (id) FROM db.t WHERE t._pos = 0",
            {0: "_pos"},
            "SELECT * EXCEPT (`_pos`, id) FROM {t0} AS `t` WHERE t._pos = 0",
        ),
        (
            "SELECT * FROM db.t a JOIN db.u b ON a._pos = b._pos",
            {0: "_pos", 1: "_pos"},
            "SELECT * EXCEPT (`a`.`_pos`, `b`.`_pos`) FROM {t0} a JOIN {t1} b ON a._pos = b._pos",
        ),
        (
            "SELECT * FROM db.t a WHERE EXISTS (SELECT * FROM db.u b WHERE a._pos = b.id)",
            {0: "_pos"},
            "SELECT * EXCEPT (`_pos`) FROM {t0} a WHERE EXISTS (SELECT * FROM {t1} b WHERE a._pos = b.id)",
        ),
        (
            "WITH q AS (SELECT *, _file f FROM db.t) SELECT * FROM q UNION SELECT * FROM db.u",
            {0: "_file"},
            "WITH q AS (SELECT * EXCEPT (`_file`), _file f FROM {t0} AS `t`) SELECT * FROM q UNION SELECT * FROM {t1} AS `u`",  # noqa: E501
        ),
        ("SELECT '_file', * FROM db.t -- _pos", {}, "SELECT '_file', * FROM {t0} AS `t` -- _pos"),
        ("SELECT _row_id, * FROM db.t", {}, "SELECT _row_id, * FROM {t0} AS `t`"),
    ],
)
def test_names_are_given_to_their_tables_and_taken_from_stars(text: str, asked: dict[int, str], expected: str) -> None:
    query = meaning(text)
    assert isinstance(query, Query)
    found = find_metadata_columns(query, dict.fromkeys(query.tables, ALL))
    assert {query.tables.index(use): ", ".join(names) for use, names in found.columns.items()} == asked
    frames = {use: f"t{n}" for n, use in enumerate(query.tables)}
    assert rewrite_query(query, frames, found.edits).text == expected
