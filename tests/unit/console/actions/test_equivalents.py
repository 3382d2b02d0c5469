import datetime as dt

from bergline.catalog.identifiers import TableName
from bergline.console.actions.equivalents import alter, call, command, python_call

NAME = TableName(("a b",), "t'\"`")


def test_python_quotes_its_arguments() -> None:
    assert python_call(TableName(("db",), "t"), "refs.x", "it's", at=None, to=3) == (
        "lake.load_table('db.t').refs.x(\"it's\", to=3)"
    )


def test_sql_quotes_names_and_text() -> None:
    assert alter(NAME, "DROP TAG x") == "ALTER TABLE `a b`.`t'\"``` DROP TAG x"
    moment = dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)
    assert call("p", TableName(("db",), "t"), s="it's", n=3, b=True, none=None, at=moment) == (
        "CALL system.p(table => 'db.t', s => 'it\\'s', n => 3, b => true, "
        "at => TIMESTAMP '2026-01-31 12:00:00.000+00:00')"
    )


def test_command_is_quoted_for_the_shell_and_names_are_no_options() -> None:
    assert command("tag drop", "db.t", "a; rm", yes=True, at=None) == "bergline tag drop db.t 'a; rm' --yes"
    assert command("branch merge", "db.t", "-x", into="-y", clear=["a", "b"]) == (
        "bergline branch merge --into=-y --clear a --clear b -- db.t -x"
    )
