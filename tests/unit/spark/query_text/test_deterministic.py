"""Functions whose result may be another each time."""

import pytest

from bergline.spark.query_text.deterministic import random_calls
from bergline.sql.text.tokens import SqlText


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("rand() < 0.5", ["rand"]),
        ("a = `UUID` () OR b IN (SELECT randn(3))", ["UUID", "randn"]),
        ("rand = 1 AND uuid < 'rand()' AND random_id() = now() -- rand()", []),
    ],
)
def test_only_calls_count(text: str, found: list[str]) -> None:
    assert [token.value for token in random_calls(SqlText(text))] == found
