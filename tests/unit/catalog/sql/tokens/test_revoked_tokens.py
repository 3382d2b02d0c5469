"""Which tokens of issuers are revoked."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bergline.catalog.sql.records import Records, records_of
from bergline.catalog.sql.tokens.revoked_tokens import Revocation, RevokedKind, SqlRevokedTokens
from bergline.errors import InvalidInputError
from bergline.lake.lake import connect
from support.fixtures.catalog_files import new_catalog_uri

JTI, PRINCIPAL = RevokedKind.JTI, RevokedKind.PRINCIPAL


@pytest.fixture
def records(tmp_path: Path) -> Iterator[Records]:
    with connect(new_catalog_uri(tmp_path / "catalog.db")) as lake:
        yield records_of(lake.catalog)


@pytest.fixture
def revoked(records: Records) -> SqlRevokedTokens:
    return SqlRevokedTokens(records.database, records.catalog_name)


def test_each_change_has_another_version(records: Records, revoked: SqlRevokedTokens) -> None:
    versions = [revoked.version()]
    for change in (
        lambda: revoked.revoke_token("a", 1),
        lambda: revoked.revoke_principal("a", 100, 2),
        lambda: revoked.revoke_principal("b", 100, 3),
        lambda: revoked.revoke_principal("b", 150, 3),
        lambda: revoked.revoke_principal("a", 200, 4),
    ):
        change()
        versions.append(revoked.version())
    assert len(set(versions)) == 6
    revoked.revoke_token("a", 5)
    revoked.revoke_principal("a", 150, 6)
    SqlRevokedTokens(records.database, "other").revoke_token("c", 7)
    assert revoked.version() == versions[-1]
    assert revoked.all() == [
        Revocation(PRINCIPAL, "a", 4, 200),
        Revocation(PRINCIPAL, "b", 3, 150),
        Revocation(JTI, "a", 1),
    ]


@pytest.mark.parametrize("name", ["", "a\0b", "a" * 256])
def test_names_that_nothing_can_have_are_refused(revoked: SqlRevokedTokens, name: str) -> None:
    with pytest.raises(InvalidInputError):
        revoked.revoke_token(name, 1)
    with pytest.raises(InvalidInputError):
        revoked.revoke_principal(name, 1, 1)


def test_tokens_of_the_catalog_are_revoked_by_principal_too(records: Records) -> None:
    tokens = records.tokens
    tokens.create("old", "bl_old", 10, None, principal="ann")
    tokens.create("ann", "bl_rotated", 20, None)
    tokens.create("new", "bl_new", 90, None, principal="ann")
    tokens.create("bob", "bl_bob", 10, None)
    tokens.rotate("ann", "bl_again", 60, 1000)
    assert tokens.revoke_of("ann", 50) == ["old"]
    assert [bool(tokens.find(f"bl_{name}")) for name in ("old", "rotated", "again", "new", "bob")] == [
        False,
        False,
        True,
        True,
        True,
    ]
    assert tokens.revoke_of("ann", 1000) == ["ann", "new"]
    assert tokens.revoke_of("bob", 1000) == ["bob"]
    assert tokens.all() == []
    assert tokens.is_closed
