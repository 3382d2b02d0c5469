"""Completion: keywords in the case that is typed, tables, refs, and columns of the tables in the statement."""

from pathlib import Path

from bergline import Lake
from bergline.cli.sql_shell.completion import Completion
from bergline.errors import NotFoundError
from support.fixtures.damaged_tables import new_table, open_lake


def test_words_of_a_lake(tmp_path: Path) -> None:
    with open_lake(tmp_path) as lake:
        new_table(lake).refs.create_tag("v1")
    completion = Completion(lambda: open_lake(tmp_path))
    assert completion.of("SEL", "SEL") == ["SELECT"]
    assert completion.of("sel", "sel") == ["select"]
    assert completion.of("db.o", "select * from db.o") == ["db.orders"]
    assert completion.of("reg", "select reg") == []
    assert completion.of("reg", "select id from db.orders where reg") == ["region"]
    assert completion.of("db.orders.t", "select * from db.orders.t") == ["db.orders.tag_v1"]
    completion.close()


def test_without_a_lake_there_are_keywords() -> None:
    def no_lake() -> Lake:
        raise NotFoundError("no catalog", kind="catalog", name="x")

    completion = Completion(no_lake)
    assert completion.of("WHE", "WHE") == ["WHEN", "WHERE"]
    completion.close()
