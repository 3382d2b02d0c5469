"""VERSION AS OF and TIMESTAMP AS OF."""

import pytest

from bergline.sql.queries.query import AsOf, Query
from bergline.sql.text.tokens import SqlText
from support.fixtures.sql_statements import meaning


@pytest.mark.parametrize(
    ("clause", "as_of"),
    [
        ("VERSION AS OF 'staging'", AsOf("version", "staging")),
        ("FOR VERSION AS OF 8027658604211071520", AsOf("version", 8027658604211071520)),
        ("TIMESTAMP AS OF TIMESTAMP '2026-01-01 00:00:00'", AsOf("timestamp", "2026-01-01 00:00:00")),
        ("FOR SYSTEM_TIME AS OF 1700000000", AsOf("timestamp", 1700000000)),
        ("TIMESTAMP AS OF DATE '2026-01-01'", AsOf("timestamp", None, SqlText("DATE '2026-01-01'"))),
        (
            "TIMESTAMP AS OF now() - INTERVAL 1 DAY 2 HOURS",
            AsOf("timestamp", None, SqlText("now() - INTERVAL 1 DAY 2 HOURS")),
        ),
        ("TIMESTAMP AS OF '2026-01-01' || x.y", AsOf("timestamp", None, SqlText("'2026-01-01' || x.y"))),
        ("TIMESTAMP AS OF (SELECT max(at) FROM s.t)", AsOf("timestamp", None, SqlText("(SELECT max(at) FROM s.t)"))),
        ("TIMESTAMP AS OF :when::timestamp", AsOf("timestamp", None, SqlText(":when::timestamp"))),
        ("TIMESTAMP AS OF -INTERVAL '1 day' + now()", AsOf("timestamp", None, SqlText("-INTERVAL '1 day' + now()"))),
        ("", None),
    ],
)
def test_time_travel_is_understood(clause: str, as_of: AsOf | None) -> None:
    query = meaning(f"SELECT * FROM db.orders {clause}")
    assert isinstance(query, Query)
    assert query.tables[0].as_of == as_of
