"""Hints at the command line name commands."""

import pytest

from bergline.cli.output.command_hints import command_hint


@pytest.mark.parametrize(
    ("hint", "shown"),
    [
        ('`refs.diff("main", "a b")` shows how', "`bergline branch diff TABLE main 'a b'` shows how"),
        ('`refs.merge("x", into="main")` is it', "`bergline branch merge TABLE x --into main` is it"),
        ('`refs.merge("x", into="y", squash=True)`', "`bergline branch merge TABLE x --into y --squash`"),
        (
            '`refs.create_branch("pick", at=7)` and `refs.merge("pick", into="main")` bring it',
            "`bergline branch create TABLE pick --at 7` and `bergline branch merge TABLE pick --into main` bring it",
        ),
        (
            '`refs.set_current("main", to=7)` goes anywhere',
            "`bergline sql \"CALL system.set_current_snapshot('TABLE', 7)\"` goes anywhere",
        ),
        (
            "`refs.cherry_pick` takes one of them by its id",
            "`bergline sql \"CALL system.cherrypick_snapshot('TABLE', ID)\"` takes one of them by its id",
        ),
        ("`squash=True` replays the difference", "`--squash` replays the difference"),
        ("if nobody writes, plan with allow_recent=True", "if nobody writes, plan with --allow-recent"),
        ("try again, or connect with a longer busy_timeout", "try again"),
        ("remove it: `refs.unprotect('main')`", "in Python: remove it: `refs.unprotect('main')`"),
        ('`refs.set_current("b", to=7)` goes', 'in Python: `refs.set_current("b", to=7)` goes'),
        ("in Python: `table.changes(before, after)`", "in Python: `table.changes(before, after)`"),
        ("did you mean `table.name`?", "did you mean `table.name`?"),
        ("list the tables again", "list the tables again"),
    ],
)
def test_calls_become_commands(hint: str, shown: str) -> None:
    assert command_hint(hint) == shown
