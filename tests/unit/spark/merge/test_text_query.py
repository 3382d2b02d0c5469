"""The query of a MERGE: its join, its levels, and where its parts were written."""

import pytest

from bergline.errors import BerglineError, InvalidInputError, NotFoundError, UnsupportedError
from bergline.format.schema.schema import Schema
from bergline.format.types.types import INT, LONG, STRING, NestedField, StructType
from bergline.spark.merge.clauses import AssignedClause
from bergline.spark.merge.text_query import MergeQuery, compose_merge, text_clauses
from bergline.sql.queries.merge import MergeInto
from bergline.sql.queries.query import Query
from bergline.sql.queries.read import read_query
from bergline.sql.queries.rewritten import written_place
from bergline.sql.text.tokens import SqlText
from support.fixtures.sql_statements import meaning

SCHEMA = Schema(
    fields=(
        NestedField(1, "id", True, LONG),
        NestedField(2, "name", False, STRING),
        NestedField(3, "point", False, StructType((NestedField(4, "x", False, INT), NestedField(5, "y", False, INT)))),
        NestedField(6, "level", False, INT, write_default=3),
    )
)
COLUMNS = [f.name for f in SCHEMA.fields]
HEAD = "MERGE INTO db.t USING db.s AS s ON t.id = s.id "


def _merge(text: str) -> MergeInto:
    merge = meaning(text)
    assert isinstance(merge, MergeInto), merge
    return merge


def _clauses(merge: MergeInto) -> tuple[AssignedClause, ...]:
    return text_clauses(merge, SCHEMA, ["ID", "name", "point", "level", "more"])


def _composed(text: str) -> MergeQuery:
    merge = _merge(text)
    return compose_merge(merge, _clauses(merge), COLUMNS, has_row_ids=True)


@pytest.mark.parametrize(
    ("clauses", "join"),
    [
        ("WHEN MATCHED THEN DELETE", "INNER JOIN"),
        ("WHEN NOT MATCHED THEN INSERT *", "LEFT ANTI JOIN"),
        ("WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *", "RIGHT OUTER JOIN"),
        ("WHEN NOT MATCHED BY SOURCE THEN DELETE", "LEFT OUTER JOIN"),
        ("WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY SOURCE THEN DELETE", "LEFT OUTER JOIN"),
        ("WHEN NOT MATCHED THEN INSERT * WHEN NOT MATCHED BY SOURCE THEN DELETE", "FULL OUTER JOIN"),
    ],
)
def test_join_keeps_the_rows_that_clauses_are_about(clauses: str, join: str) -> None:
    composed = _composed(HEAD + clauses).composed
    assert f" {join} " in composed.text
    assert composed.text.count(" JOIN ") == 1
    query = read_query(SqlText(composed.text))
    assert isinstance(query, Query), query
    assert [use.name for use in query.tables if len(use.name) > 1] in (
        [("db", "t"), ("db", "s")],
        [("db", "s"), ("db", "t")],
    )


def test_deletes_alone_carry_no_column_of_the_target() -> None:
    text = _composed(HEAD + "WHEN MATCHED AND t.name = 'x' THEN DELETE").composed.text
    assert "_bergline_target_" not in text
    text = _composed(HEAD + "WHEN MATCHED THEN UPDATE SET name = 'x'").composed.text
    assert "`t`.`level` AS _bergline_target_3" in text


def test_each_clause_has_values_of_its_own() -> None:
    text = (
        HEAD + "WHEN MATCHED AND s.a THEN UPDATE SET *\n"
        "WHEN MATCHED THEN UPDATE SET t.point.x = s.x, level = DEFAULT\n"
        "WHEN NOT MATCHED THEN INSERT (id, name) VALUES (s.id, DEFAULT)"
    )
    assert [[".".join(f.path) for f in c.fields] for c in _clauses(_merge(text))] == [
        ["id", "name", "point", "level"],
        ["point.x", "level"],
        ["id", "name"],
    ]
    composed = _composed(text).composed.text
    given = "'v0_0', `s`.`id`, 'v0_1', `s`.`name`, 'v0_2', `s`.`point`, 'v0_3', `s`.`level`"
    nulls = "'v0_0', NULL, 'v0_1', NULL, 'v0_2', NULL, 'v0_3', NULL"
    first = f"named_struct('clause', 0, {given}, 'v1_0', NULL, 'v1_1', NULL)"
    second = f"named_struct('clause', 1, {nulls}, 'v1_0', (s.x), 'v1_1', 3)"
    assert f"CASE WHEN (s.a) THEN {first} WHEN true THEN {second} END" in composed
    assert "named_struct('clause', 2, 'v2_0', (s.id), 'v2_1', CAST(NULL AS string))" in composed


def test_long_names_become_the_alias() -> None:
    text = (
        "MERGE INTO lake.db.t USING db.s ON lake.db.t.id = db.s.id AND db.t.name = s.name "
        "WHEN MATCHED THEN UPDATE SET lake.db.t.point.x = db.s.point.x"
    )
    composed = _composed(text).composed.text
    assert "ON (t.id = s.id AND t.name = s.name)" in composed
    assert "(s.point.x)" in composed


def test_only_columns_lose_the_parts_before_the_alias() -> None:
    """Tables in subqueries keep their names: those of the target's metadata begin like its columns."""
    subquery = "(SELECT max(db.t.id) FROM db.t JOIN db.t.files JOIN db.s.snapshots VERSION AS OF 3) > 0"
    edited = subquery.replace("db.t.id", "t.id")
    composed = _composed(
        f"MERGE INTO db.t USING db.s ON db.t.id = db.s.id AND {subquery} WHEN MATCHED AND {subquery} THEN DELETE"
    ).composed.text
    assert f"ON (t.id = s.id AND {edited})" in composed
    assert f"WHEN ({edited}) THEN" in composed


@pytest.mark.parametrize("inner", ["other.t", "other.u AS t", "other.u T"])
def test_column_that_a_subquery_would_take_for_another_is_refused(inner: str) -> None:
    outside = _composed(
        f"MERGE INTO db.t USING db.s ON (db.t.id) = 1 AND (SELECT count(*) FROM {inner}) > 0 WHEN MATCHED THEN DELETE"
    )
    assert "ON ((t.id) = 1 AND" in outside.composed.text
    condition = f"EXISTS (SELECT 1 FROM {inner} WHERE x = db.t.id)"
    with pytest.raises(UnsupportedError, match=r"cannot tell `db\.t\.id` from columns of another `t`"):
        _composed(f"MERGE INTO db.t USING db.s ON {condition} WHEN MATCHED THEN DELETE")


def test_places_are_those_of_the_statement() -> None:
    statement = HEAD + "WHEN MATCHED AND s.flag THEN UPDATE SET name = s.other WHEN NOT MATCHED THEN INSERT *"
    composed = _composed(statement).composed
    for wanted in ("s.flag", "s.other", "t.id = s.id", "db.s"):
        found = written_place(composed.parts, composed.text.index(wanted))
        assert statement[found:].startswith(wanted)


@pytest.mark.parametrize(
    ("clause", "error", "message"),
    [
        ("WHEN MATCHED THEN UPDATE SET nope = 1", NotFoundError, "no column `nope`: there are `id`, `name`, `point`"),
        ("WHEN MATCHED THEN UPDATE SET point.z = 1", NotFoundError, "no column `point.z`"),
        ("WHEN MATCHED THEN UPDATE SET name = 1, t.name = 2", InvalidInputError, "at line 1, column 87"),
        ("WHEN NOT MATCHED THEN INSERT (point.x) VALUES (1)", InvalidInputError, "found the field `point.x` of one"),
    ],
)
def test_one_error_with_its_place(clause: str, error: type[BerglineError], message: str) -> None:
    with pytest.raises(error) as raised:
        _composed(HEAD + clause)
    assert message in str(raised.value)
    assert " at line 1, column " in str(raised.value)


def test_same_name_twice_needs_an_alias() -> None:
    with pytest.raises(InvalidInputError, match="expected target and source by different names"):
        _composed("MERGE INTO db.t USING other.t ON true WHEN MATCHED THEN DELETE")
