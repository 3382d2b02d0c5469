"""Hostile names on a terminal."""

import pytest

from bergline import Lake
from bergline.cli.output.visible import visible
from support.fixtures.rows import ORDERS, order_rows
from support.processes.command_line import Command


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("größe 数", "größe 数"),
        ("a\x1b[31mb", "a\\x1b[31mb"),
        ("a\r\nb", "a\\r\\nb"),
        ("a\u202eb", "a\\u202eb"),
        ("a\udcffb", "a\\udcffb"),
    ],
)
def test_what_is_not_printable_is_escaped(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert visible("a\n\x07", keep="\n") == "a\n\\x07"


def test_no_command_prints_escape_sequences_of_a_table(bl: Command, lake: Lake) -> None:
    table = lake.create_table("db.orders", ORDERS, properties={"k": "\x1b[31mv"})
    table.append(order_rows(1, region="\x1b[2J"), summary={"author": "\x1b]0;x\x07"})
    table.refs.create_branch("b\x1b[1m")
    with table.update_schema() as update:
        update.set_doc("id", "\x1b[5m")
    for command in (
        "refs db.orders",
        "log db.orders --graph",
        "table schema db.orders",
        "table properties db.orders",
        "table show db.orders",
        "read db.orders",
        "branch create db.orders b\x1b[1m",
        "read db.\x1b[31m",
    ):
        done = bl(*command.split(" "))
        assert "\\x1b" in done.stdout + done.stderr, command
        assert "\x1b" not in done.stdout + done.stderr, command
