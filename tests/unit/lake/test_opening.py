"""Connecting to a catalog that is not there: looking creates nothing, and says what would."""

import sqlite3
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
import sqlalchemy as sa

import bergline
from bergline.errors import InvalidInputError, NotFoundError
from support.fixtures.rows import ORDERS


def test_missing_database_file_is_not_created(tmp_path: Path) -> None:
    with pytest.raises(
        NotFoundError, match=f"no catalog at `sqlite:///{tmp_path}/typo/catalog.db`: no such file"
    ) as no:
        bergline.connect(f"sqlite:///{tmp_path}/typo/catalog.db")
    assert no.value.kind == "catalog"
    assert no.value.hints == ("connect(…, create=True) makes a new one",)
    assert list(tmp_path.iterdir()) == []


def test_missing_default_lake_is_created_unless_told_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotFoundError, match=r"no catalog at `sqlite:///./lake/catalog.db`"):
        bergline.connect(create=False)
    assert list(tmp_path.iterdir()) == []
    bergline.connect().close()
    with bergline.connect(create=False) as lake:
        assert lake.list_namespaces() == []


def test_created_catalog_opens_without_being_created_again(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/lake/catalog.db"
    with bergline.connect(uri, create=True) as made, bergline.connect(uri) as opened:
        made.create_namespace("db")
        assert opened.list_namespaces() == ["db"]
        assert made.same_as(opened)
        with bergline.connect(uri, create=True) as again:
            assert again.list_namespaces() == ["db"]


def test_near_catalogs_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    bergline.connect("sqlite:///lake/catalog.db", create=True).close()
    bergline.connect("sqlite:///sales.sqlite", create=True).close()
    for typo, meant in (
        ("lake/catalogue.db", "lake/catalog.db"),
        ("lakes/catalog.db", "lake/catalog.db"),
        ("./sale.sqlite", "./sales.sqlite"),
    ):
        with pytest.raises(NotFoundError) as no:
            bergline.connect(f"sqlite:///{typo}")
        assert f"did you mean `sqlite:///{meant}`?" in no.value.hints


def test_files_that_sqlite_keeps_beside_a_database_are_no_near_catalogs(tmp_path: Path) -> None:
    with bergline.connect(f"sqlite:///{tmp_path}/catalog.db", create=True) as lake:
        lake.create_namespace("db")
        (tmp_path / "catalog.db-journal").touch()
        assert (tmp_path / "catalog.db-wal").exists()
        with pytest.raises(NotFoundError) as no:
            bergline.connect(f"sqlite:///{tmp_path}/catalog.bd")
    assert no.value.hints[-1] == f"did you mean `sqlite:///{tmp_path}/catalog.db`?"


def test_absolute_path_with_a_slash_too_few_is_recognized(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bergline.connect(f"sqlite:///{tmp_path}/catalog.db", create=True).close()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotFoundError) as no:
        bergline.connect(f"sqlite:///{str(tmp_path).lstrip('/')}/catalog.db")
    assert f"an absolute path has four slashes: `sqlite:///{tmp_path}/catalog.db`" in no.value.hints


def test_database_of_something_else_gets_no_tables(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "other.db") as other:
        other.execute("CREATE TABLE people (name TEXT)")
    other.close()
    before = (tmp_path / "other.db").read_bytes()
    with pytest.raises(NotFoundError, match=r"no catalog at `.*other.db`: the database has no catalog's tables"):
        bergline.connect(f"sqlite:///{tmp_path}/other.db")
    assert (tmp_path / "other.db").read_bytes() == before
    bergline.connect(f"sqlite:///{tmp_path}/other.db", create=True).close()
    bergline.connect(f"sqlite:///{tmp_path}/other.db").close()


def test_name_that_the_database_does_not_have_is_not_an_empty_lake(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    with bergline.connect(uri, create=True, name="sales") as lake:
        lake.create_namespace("db")
    with pytest.raises(NotFoundError, match=f"no catalog `sale` in {tmp_path}/catalog.db, which has `sales`") as no:
        bergline.connect(uri, name="sale")
    assert no.value.hints == ("connect(…, create=True) makes a new one", "did you mean `sales`?")
    with pytest.raises(NotFoundError, match=r"no catalog `lake` in .*, which has `sales`"):
        bergline.connect(uri)
    with bergline.connect(uri, create=True, name="marketing") as lake:
        lake.create_namespace("db")
        lake.create_table("db.orders", ORDERS)
        lake.drop_table("db.orders")
    bergline.connect(uri, name="marketing").close()


def test_postgres_database_without_a_catalog_gets_no_tables(postgres: str, tmp_path: Path) -> None:
    database = f"plain_{uuid4().hex}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {database}")
    uri = sa.make_url(postgres).set(database=database).render_as_string(hide_password=False)

    def tables() -> list[str]:
        with psycopg.connect(uri) as connection:
            rows = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        return [name for (name,) in rows]

    with pytest.raises(NotFoundError, match=r"no catalog at `postgresql://.*`: the database has no catalog's tables"):
        bergline.connect(uri, warehouse=tmp_path)
    assert tables() == []
    bergline.connect(uri, warehouse=tmp_path, create=True).close()
    assert "iceberg_tables" in tables()
    with bergline.connect(uri, warehouse=tmp_path) as lake:
        assert lake.list_namespaces() == []


def test_who_may_only_read_the_pointers_may_look(postgres: str, tmp_path: Path) -> None:
    role, name = f"u{uuid4().hex}", uuid4().hex
    with bergline.connect(postgres, warehouse=tmp_path, name=name, create=True) as lake:
        lake.create_namespace("db")
    tables = "iceberg_tables, iceberg_namespace_properties, bergline_layout"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN")
        connection.execute(f"GRANT SELECT ON {tables} TO {role}")
    uri = sa.make_url(postgres).set(username=role).render_as_string(hide_password=False)
    with bergline.connect(uri, name=name) as lake:
        assert lake.list_namespaces() == ["db"]
    with pytest.raises(NotFoundError, match=f"no catalog `x{name}` in ") as no:
        bergline.connect(uri, name=f"x{name}")
    assert no.value.near == (name,)
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"DROP OWNED BY {role}")
        connection.execute(f"DROP ROLE {role}")


def test_missing_directory_of_version_files_is_not_an_empty_lake(tmp_path: Path) -> None:
    (tmp_path / "warehouse").mkdir()
    with pytest.raises(NotFoundError, match=f"no catalog at `file://{tmp_path}/warehose`: no such directory") as no:
        bergline.connect(f"file://{tmp_path}/warehose")
    assert f"did you mean `file://{tmp_path}/warehouse`?" in no.value.hints
    assert [p.name for p in tmp_path.iterdir()] == ["warehouse"]
    bergline.connect(f"file://{tmp_path}/new", create=True).close()
    with bergline.connect(f"file://{tmp_path}/new") as lake:
        assert lake.list_namespaces() == []


def test_whether_to_create_is_yes_or_no() -> None:
    with pytest.raises(InvalidInputError, match="expected true or false for create, found 'yes'"):
        bergline.connect("memory:", create="yes")  # type: ignore[arg-type]


@pytest.mark.parametrize("create", [None, False, True])
def test_lake_in_memory_is_always_new(create: bool | None) -> None:
    with bergline.connect("memory:", create=create) as lake:
        assert lake.list_namespaces() == []
