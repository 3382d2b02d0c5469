"""Tokens in SQLite and PostgreSQL: principals, groups, rotation, last use."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from bergline.catalog.sql.governance_layout import TOKEN_DETAILS
from bergline.catalog.sql.records import records_of
from bergline.catalog.sql.tokens.tokens import SqlTokens, StoredToken
from bergline.errors import AlreadyExistsError, InvalidInputError, NotFoundError
from bergline.lake.opening import CatalogConfig, open_catalog
from support.fixtures.catalog_files import new_catalog_uri

HOUR = 3_600_000


class OwnSecrets(SqlTokens):
    """Secrets are unique in a database, which tests share: each has its own."""

    def create(self, name: str, text: str, *arguments: Any, **named: Any) -> None:
        super().create(name, f"{self._catalog} {text}", *arguments, **named)

    def rotate(self, name: str, text: str, *arguments: Any, **named: Any) -> int | None:
        return super().rotate(name, f"{self._catalog} {text}", *arguments, **named)

    def find(self, text: str) -> StoredToken | None:
        return super().find(f"{self._catalog} {text}")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.server)])
def tokens(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqlTokens]:
    uri = new_catalog_uri(tmp_path / "catalog.db") if request.param == "sqlite" else request.getfixturevalue("postgres")
    catalog: Any = open_catalog(
        CatalogConfig(uri, f"file://{tmp_path}", f"tokens-{tmp_path.name}", {}, 10.0, (), 10**6, True)
    )
    records = records_of(catalog)
    yield OwnSecrets(records.database, records.catalog_name)
    catalog.close()


def expiry(tokens: SqlTokens, text: str) -> int | None:
    found = tokens.find(text)
    assert found is not None
    return found.expires_ms


def test_several_tokens_are_of_one_principal(tokens: SqlTokens) -> None:
    tokens.create("ann", "a", 1, None)
    tokens.create("ci-1", "c1", 1, None, principal="ci", groups=["etl", "etl", "dev"])
    tokens.create("ci-2", "c2", 1, 9, principal="ci")
    assert [(t.name, t.principal, t.groups) for t in tokens.all()] == [
        ("ann", "ann", frozenset()),
        ("ci-1", "ci", {"etl", "dev"}),
        ("ci-2", "ci", frozenset()),
    ]
    found = tokens.find("c1")
    assert found is not None
    assert (found.principal, found.groups) == ("ci", {"etl", "dev"})


def test_token_from_before_there_were_details_is_of_its_own_name(tokens: SqlTokens) -> None:
    tokens.create("ann", "a", 1, None, groups=["x"])
    with tokens._database.changing() as connection:
        connection.execute(sa.delete(TOKEN_DETAILS).where(TOKEN_DETAILS.c.catalog_name == tokens._catalog))
    found = tokens.find("a")
    assert found is not None
    assert (found.principal, found.groups, found.last_used_ms) == ("ann", frozenset(), None)
    tokens.record_uses({"ann": 7})
    assert [t.last_used_ms for t in tokens.all()] == [7]


def test_old_secret_works_until_the_overlap_ends(tokens: SqlTokens) -> None:
    tokens.create("ci", "old", 0, None, groups=["etl"])
    assert tokens.rotate("ci", "new", 100, HOUR) is None
    assert expiry(tokens, "new") is None
    assert expiry(tokens, "old") == 100 + HOUR
    old = tokens.find("old")
    assert old is not None
    assert (old.name, old.principal, old.groups) == ("ci", "ci", {"etl"})
    (listed,) = tokens.all()
    assert (listed.created_ms, listed.old_until_ms) == (100, 100 + HOUR)


def test_next_rotation_ends_all_older_secrets_with_its_overlap(tokens: SqlTokens) -> None:
    tokens.create("ci", "one", 0, None)
    tokens.rotate("ci", "two", 0, 10 * HOUR)
    tokens.rotate("ci", "three", 1, HOUR)
    assert expiry(tokens, "one") == expiry(tokens, "two") == 1 + HOUR
    tokens.rotate("ci", "four", 2, 0)
    assert {expiry(tokens, text) for text in ("one", "two", "three")} == {2}
    tokens.rotate("ci", "five", 3, HOUR)  # forgets what is over
    assert tokens.find("one") is None
    assert expiry(tokens, "four") == 3 + HOUR


def test_new_secret_lives_as_long_as_the_old_was_to_live(tokens: SqlTokens) -> None:
    tokens.create("ci", "one", 0, 5 * HOUR)
    assert tokens.rotate("ci", "two", 4 * HOUR, 3 * HOUR) == 9 * HOUR
    assert expiry(tokens, "one") == 5 * HOUR  # its own end comes first
    assert tokens.rotate("ci", "three", 4 * HOUR, 0, lifetime_ms=7) == 4 * HOUR + 7


def test_revoked_token_takes_all_its_secrets_with_it(tokens: SqlTokens) -> None:
    tokens.create("ci", "one", 0, None, principal="bot", groups=["g"])
    tokens.rotate("ci", "two", 0, HOUR)
    tokens.record_uses({"ci": 5})
    tokens.revoke("ci")
    assert tokens.find("one") is tokens.find("two") is None
    tokens.create("ci", "three", 0, None)
    (again,) = tokens.all()
    assert (again.principal, again.groups, again.last_used_ms, again.old_until_ms) == ("ci", frozenset(), None, None)


def test_latest_use_stays(tokens: SqlTokens) -> None:
    tokens.create("a", "1", 0, None)
    tokens.create("b", "2", 0, None)
    tokens.record_uses({"a": 50, "b": 60})
    tokens.record_uses({"a": 40, "b": 70, "gone": 1})
    assert [t.last_used_ms for t in tokens.all()] == [50, 70]


def test_wrong_names_are_refused(tokens: SqlTokens) -> None:
    for name, principal, groups in (
        ("", None, ()),
        ("a\0", None, ()),
        ("a" * 256, None, ()),
        ("a", "", ()),
        ("a", "b" * 256, ()),
        ("a", None, ("",)),
        ("a", None, ("g" * 256,)),
        ("a", None, tuple(map(str, range(101)))),
    ):
        with pytest.raises(InvalidInputError):
            tokens.create(name, "t", 0, None, principal=principal, groups=groups)
    assert not tokens.is_closed
    tokens.create("ann", "t", 0, None)
    with pytest.raises(AlreadyExistsError) as taken:
        tokens.create("ann", "u", 0, None)
    assert "token rotate" in taken.value.hints[0]
    for missing in ("anna", ""):
        with pytest.raises(NotFoundError):
            tokens.rotate(missing, "v", 0, 0)
