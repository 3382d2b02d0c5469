"""Text put together from parts of a statement."""

from bergline.sql.text.composed import Composer, parameter_order, written_place
from bergline.sql.text.tokens import SqlText


def test_parts_know_where_they_were_written() -> None:
    statement = "MERGE x ON db.t.a = 1 SET b"
    composer = Composer(SqlText(statement))
    composer.add("SELECT ")
    composer.quote(statement.index("b", 20), len(statement))
    composer.add(" WHERE ")
    composer.quote(11, 21, ((11, 15, "`t`"),))
    composed = composer.result()
    assert composed.text == "SELECT b WHERE `t`.a = 1"
    for wanted in ("b", ".a", "1"):
        place = composed.text.index(wanted)
        written = written_place(composed.parts, place)
        assert statement[written:].startswith(wanted)


def test_a_place_between_parts_is_where_the_part_before_it_ends() -> None:
    composer = Composer(SqlText("abc def"))
    composer.quote(0, 3)
    composer.add(" and ")
    composer.quote(4, 7)
    assert [written_place(composer.result().parts, place) for place in (1, 5, 8, 99)] == [1, 3, 4, 7]


def test_parameters_without_names_are_known_by_their_order_in_the_statement() -> None:
    statement = SqlText("USING ? ON '?' = ? SET ?")
    composer = Composer(statement)
    composer.quote(23, 24)
    composer.add(", ")
    composer.quote(11, 18)
    composer.add(", ")
    composer.quote(6, 7)
    composed = composer.result()
    assert composed.text == "?, '?' = ?, ?"
    assert parameter_order(SqlText(composed.text), composed.parts, statement) == [2, 1, 0]
