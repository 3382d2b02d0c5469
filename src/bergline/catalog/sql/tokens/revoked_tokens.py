"""Tokens of issuers that were revoked, in the catalog's database: one by its id, or all of a principal until a time."""

from enum import StrEnum

import msgspec
import sqlalchemy as sa

from bergline.arguments import check_no_nul
from bergline.catalog.identifiers import check_lengths
from bergline.catalog.sql.database import SqlDatabase
from bergline.catalog.sql.security_layout import REVOKED_TOKENS
from bergline.errors import InvalidInputError


class RevokedKind(StrEnum):
    """By what tokens are revoked."""

    JTI = "jti"
    PRINCIPAL = "principal"


class Revocation(msgspec.Struct, frozen=True):
    """The token with an id, or the tokens of a principal that were issued before a time."""

    kind: RevokedKind
    name: str
    revoked_ms: int
    issued_before_ms: int | None = None


class SqlRevokedTokens:
    """The revoked tokens of one catalog."""

    def __init__(self, database: SqlDatabase, catalog_name: str) -> None:
        self._database = database
        self._catalog = catalog_name

    def revoke_token(self, jti: str, now_ms: int) -> None:
        """Revoke the token with an id."""
        self._add(Revocation(RevokedKind.JTI, jti, now_ms))

    def revoke_principal(self, principal: str, issued_before_ms: int, now_ms: int) -> None:
        """Revoke a principal's tokens that were issued before a time; an earlier time than before changes nothing."""
        self._add(Revocation(RevokedKind.PRINCIPAL, principal, now_ms, issued_before_ms))

    def all(self) -> list[Revocation]:
        """All of them, newest first."""
        columns = [REVOKED_TOKENS.c[name] for name in Revocation.__struct_fields__]
        query = (
            sa.select(*columns)
            .where(REVOKED_TOKENS.c.catalog_name == self._catalog)
            .order_by(REVOKED_TOKENS.c.id.desc())
        )
        with self._database.reading() as connection:
            rows = connection.execute(query).all()
        return [Revocation(RevokedKind(kind), name, at_ms, before_ms) for kind, name, at_ms, before_ms in rows]

    def version(self) -> tuple[int, int]:
        """Another value after each change, for no id is given twice; cheap to ask for."""
        query = sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(REVOKED_TOKENS.c.id), 0))
        with self._database.reading() as connection:
            count, ids = connection.execute(query.where(REVOKED_TOKENS.c.catalog_name == self._catalog)).one()
        return count, int(ids)

    def _add(self, revocation: Revocation) -> None:
        check_lengths(revocation.name)
        check_no_nul(revocation.name, f"the {revocation.kind} of revoked tokens")
        if not revocation.name:
            raise InvalidInputError(f"expected the {revocation.kind} of tokens to revoke, found empty text")
        columns = REVOKED_TOKENS.c
        same = sa.and_(
            REVOKED_TOKENS.c.catalog_name == self._catalog,
            columns.kind == revocation.kind,
            columns.name == revocation.name,
        )
        with self._database.changing() as connection:
            query = sa.select(columns.issued_before_ms).where(same).with_for_update()
            known = connection.execute(query).one_or_none()
            if known is not None:
                if (known.issued_before_ms or 0) >= (revocation.issued_before_ms or 0):
                    return
                connection.execute(sa.delete(REVOKED_TOKENS).where(same))  # the new row has a new id: see `version`
            row = {"catalog_name": self._catalog} | msgspec.structs.asdict(revocation)
            connection.execute(sa.insert(REVOKED_TOKENS).values(row))
