"""SHOW of catalogs, namespaces, tables, views and procedures."""

import pytest

from bergline.sql.statements.show_names import (
    ShowCatalogs,
    ShowCurrentNamespace,
    ShowNamespaces,
    ShowProcedures,
    ShowTables,
    ShowViews,
    matching,
)
from support.fixtures.sql_statements import Session, check_unreadable, meaning

T = ("db", "t")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SHOW TABLES", ShowTables()),
        ("SHOW TABLES IN db LIKE 'a*'", ShowTables(("db",), "a*")),
        ("SHOW TABLES FROM lake.db 'x'", ShowTables(("lake", "db"), "x")),
        ("SHOW DATABASES", ShowNamespaces()),
        ("SHOW SCHEMAS LIKE 'x'", ShowNamespaces(like="x")),
        ("SHOW NAMESPACES IN db", ShowNamespaces(("db",))),
        ("SHOW VIEWS FROM lake.db LIKE 'x'", ShowViews(("lake", "db"), "x")),
        ("SHOW CATALOGS LIKE 'l*'", ShowCatalogs("l*")),
        ("SHOW PROCEDURES IN lake.system", ShowProcedures(("lake", "system"))),
        ("SHOW CURRENT NAMESPACE", ShowCurrentNamespace()),
    ],
)
def test_statements_mean(text: str, expected: object) -> None:
    assert meaning(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SHOW TABLES IN db LIKE a", "expected a pattern in quotes, found `a`"),
    ],
)
def test_what_cannot_be_read_keeps_its_error_and_its_subject(text: str, message: str) -> None:
    check_unreadable(text, message, {T, ("db",)})


def test_catalogs_views_and_procedures_are_shown(run: Session) -> None:
    assert run("SHOW CATALOGS") == [("lake",)]
    assert run("SHOW CATALOGS LIKE 'x*'") == []
    assert run("SHOW VIEWS IN db") == []
    assert run("SHOW VIEWS") is None
    shown = run("SHOW PROCEDURES IN lake.system") or []
    assert ("lake", ["system"], "system", "fast_forward") in shown
    assert run("SHOW PROCEDURES IN system") == shown
    assert run("SHOW PROCEDURES IN db") == []
    assert run("SHOW PROCEDURES IN elsewhere.system") is None
    assert run("SHOW PROCEDURES") == shown
    assert [row[3] for row in run("SHOW PROCEDURES LIKE 'roll*|diff'") or []] == [
        "rollback_to_snapshot",
        "rollback_to_timestamp",
        "diff",
    ]
    assert run("SHOW PROCEDURES IN system LIKE 'x*'") == []


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*", ["alpha", "beta", "a.b"]),
        ("A*", ["alpha", "a.b"]),
        ("beta|alpha", ["alpha", "beta"]),
        ("a.b", ["a.b"]),
        ("al.ha", []),
        ("", []),
        ("(", []),
        (None, ["alpha", "beta", "a.b"]),
    ],
)
def test_patterns_know_stars_and_bars(pattern: str | None, found: list[str]) -> None:
    assert matching(["alpha", "beta", "a.b"], pattern) == found
