"""The tables of a server's records."""

import pytest
import sqlalchemy as sa

from bergline.catalog.sql.records_layout import AUDIT, AUDIT_INDEXES, RECORDS, REQUESTS, TOKENS


@pytest.fixture
def connection() -> sa.Connection:
    connection = sa.create_engine("sqlite://").connect()
    RECORDS.create_all(connection)
    return connection


def test_tables_have_names_of_our_own() -> None:
    assert set(RECORDS.tables) >= {"bergline_requests", "bergline_audit", "bergline_tokens"}


def test_keys_are_unique_within_a_catalog(connection: sa.Connection) -> None:
    row = {"request_key": "k", "principal": "p", "operation": "o", "resource": "r", "fingerprint": "f", "status": 200}
    for catalog in ("one", "two"):
        connection.execute(sa.insert(REQUESTS), row | {"catalog_name": catalog, "at_ms": 1})
    with pytest.raises(sa.exc.IntegrityError):
        connection.execute(sa.insert(REQUESTS), row | {"catalog_name": "one", "at_ms": 2})


def test_hash_of_a_token_is_unique(connection: sa.Connection) -> None:
    connection.execute(sa.insert(TOKENS), {"catalog_name": "c", "name": "a", "hash": "h", "created_ms": 1})
    with pytest.raises(sa.exc.IntegrityError):
        connection.execute(sa.insert(TOKENS), {"catalog_name": "c", "name": "b", "hash": "h", "created_ms": 1})


@pytest.mark.parametrize("column", ["catalog_name", "resource", "principal"])
def test_newest_changes_are_read_by_an_index_without_sorting(connection: sa.Connection, column: str) -> None:
    condition = [AUDIT.c.catalog_name == "c", AUDIT.c[column] == "c"]
    query = sa.select(AUDIT.c.id).where(*condition).order_by(AUDIT.c.at_ms.desc(), AUDIT.c.id.desc())
    plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {query.compile(compile_kwargs={'literal_binds': True})}")
    shown = " ".join(str(row) for row in plan)
    assert "USING COVERING INDEX bergline_audit" in shown
    assert "TEMP B-TREE" not in shown
    assert len(AUDIT_INDEXES) == 3
