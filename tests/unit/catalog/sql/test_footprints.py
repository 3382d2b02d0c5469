"""Footprints in SQLite and PostgreSQL."""

from collections.abc import Sequence

import pytest
import sqlalchemy as sa

from bergline.catalog.catalog import DroppedTable
from bergline.catalog.footprint import FilesDirectory, Footprint, FootprintKind, FootprintOwner
from bergline.catalog.identifiers import TableName
from bergline.catalog.sql import footprints as sql_footprints
from bergline.catalog.sql.contention_layout import FOOTPRINTS
from bergline.catalog.sql.footprints import SqlFootprints
from bergline.catalog.sql.sql_store import SqlPointerStore


@pytest.fixture
def kept(store: SqlPointerStore) -> SqlFootprints:
    found = store.footprints()
    assert isinstance(found, SqlFootprints)
    return found


def location(name: str, version: int = 1) -> str:
    return f"s3://b/{name}/metadata/{version}.metadata.json"


def create(store: SqlPointerStore, *names: str) -> None:
    for name in names:
        assert store.create(TableName(("db",), name), location(name))


def read(owner: FootprintOwner, *paths: str, table_uuid: str | None = None) -> Footprint:
    """What a metadata file says: files below its table's name, or in these directories."""
    places = paths or (f"/{owner.name.name}/",)
    return Footprint(owner, table_uuid, tuple(FilesDirectory(f"s3://b{path}", path) for path in places))


def unknown(kept: SqlFootprints) -> list[FootprintOwner]:
    return [owner for page in kept.unknown() for owner in page]


def keep_all(kept: SqlFootprints) -> None:
    kept.keep([read(owner) for owner in unknown(kept)])


def near(kept: SqlFootprints, *paths: str, table_uuid: str | None = None) -> Sequence[str]:
    return sorted({str(found.owner.name) for found in kept.near(paths, table_uuid)})


def test_what_is_kept_is_known_until_the_pointer_moves(store: SqlPointerStore, kept: SqlFootprints) -> None:
    create(store, "a", "b")
    assert [str(owner.name) for owner in unknown(kept)] == ["db.a", "db.b"]
    keep_all(kept)
    assert unknown(kept) == []
    assert near(kept, "/z/") == []
    assert store.swap(TableName(("db",), "b"), location("b"), location("b", 2))
    assert near(kept, "/z/") == ["db.b"]
    assert unknown(kept) == [FootprintOwner(FootprintKind.TABLE, TableName(("db",), "b"), location("b", 2))]


def test_directories_around_and_inside_are_near(store: SqlPointerStore, kept: SqlFootprints) -> None:
    create(store, "a", "a2", "b")
    (a, a2, b) = unknown(kept)
    kept.keep([read(a, "/x/a/"), read(a2, "/x/a2/"), read(b, "/y/", "/x/a/in/")])
    assert near(kept, "/x/a/") == ["db.a", "db.b"]
    assert near(kept, "/x/a/other/") == ["db.a"]
    assert near(kept, "/x/") == ["db.a", "db.a2", "db.b"]
    assert near(kept, "/") == ["db.a", "db.a2", "db.b"]
    assert near(kept, "/y/z/", "/q/") == ["db.b"]
    assert near(kept, *(f"/none/{n}/" for n in range(100))) == ["db.a", "db.a2", "db.b"]


def test_same_uuid_is_near_wherever_its_files_are(store: SqlPointerStore, kept: SqlFootprints) -> None:
    create(store, "a", "b")
    (a, b) = unknown(kept)
    kept.keep([read(a, table_uuid="1"), read(b, table_uuid="2")])
    assert near(kept, "/z/", table_uuid="2") == ["db.b"]


def test_files_anywhere_are_near_and_known(store: SqlPointerStore, kept: SqlFootprints) -> None:
    create(store, "a", "b")
    (a, b) = unknown(kept)
    kept.keep([Footprint(a, None, ()), Footprint(b, None, (FilesDirectory("file:///b", None),))])
    assert unknown(kept) == []
    assert [(f.owner.name.name, f.directory) for f in kept.near(["/z/"], None)] == [("a", None), ("b", "file:///b")]


def test_views_and_the_trash_have_footprints(store: SqlPointerStore, kept: SqlFootprints) -> None:
    create(store, "a")
    assert store.views is not None
    store.views.create(TableName(("db",), "v"), location("v"))
    dropped = DroppedTable(TableName(("db",), "a"), location("a", 0), 1, 2, "ann", purges_files=True)
    with store.database.changing() as connection:
        store.table_trash.add(connection, dropped)
    kinds = {owner.metadata_location: owner.kind for owner in unknown(kept)}
    assert kinds == {
        location("a"): FootprintKind.TABLE,
        location("v"): FootprintKind.VIEW,
        location("a", 0): FootprintKind.DROPPED_TABLE,
    }
    keep_all(kept)
    assert {f.owner.kind for f in kept.near(["/"], None)} == set(FootprintKind)
    keep_all(kept)  # a table and one in the trash of the same name do not push each other out
    assert unknown(kept) == []


def test_pages_of_what_is_unknown_cover_all(
    store: SqlPointerStore, kept: SqlFootprints, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql_footprints, "_PIECE", 2)
    create(store, *"abcde")
    for page in kept.unknown():
        assert len(page) <= 2
        kept.keep([read(owner) for owner in page])
    assert unknown(kept) == []


def test_old_rows_of_a_name_go(store: SqlPointerStore, kept: SqlFootprints, monkeypatch: pytest.MonkeyPatch) -> None:
    create(store, "a", "b")
    keep_all(kept)
    store.swap(TableName(("db",), "a"), location("a"), location("a", 2))
    keep_all(kept)
    query = sa.select(FOOTPRINTS.c.metadata_location).where(FOOTPRINTS.c.catalog_name == store.catalog_name)
    with store.database.reading() as connection:
        assert sorted(connection.execute(query).scalars()) == [location("a", 2), location("b")]
    monkeypatch.setattr(sql_footprints, "_RULES_VERSION", 2)
    assert len(unknown(kept)) == 2
    keep_all(kept)
    assert unknown(kept) == []


def test_what_is_kept_of_a_purged_table_goes_with_it(store: SqlPointerStore, kept: SqlFootprints) -> None:
    dropped = DroppedTable(TableName(("db",), "a"), location("a"), 1, 2, "ann", purges_files=True)
    with store.database.changing() as connection:
        store.table_trash.add(connection, dropped)
    keep_all(kept)
    claim = store.table_trash.claim(3, 1000)
    assert claim is not None
    store.table_trash.forget(claim)
    query = sa.select(FOOTPRINTS.c.number).where(FOOTPRINTS.c.catalog_name == store.catalog_name)
    with store.database.reading() as connection:
        assert connection.execute(query).all() == []


def test_location_too_long_for_an_index_stays_unknown(store: SqlPointerStore, kept: SqlFootprints) -> None:
    assert store.create(TableName(("db",), "a"), "s3://b/" + "文" * 990)
    keep_all(kept)
    assert len(unknown(kept)) == 1
    assert near(kept, "/z/") == ["db.a"]


def test_older_layout_keeps_nothing(store: SqlPointerStore) -> None:
    if store.database.engine.dialect.name != "sqlite":
        pytest.skip("the database is shared by tests")
    with store.database.writing() as connection:
        connection.exec_driver_sql("DELETE FROM bergline_layout WHERE version > 6")
    assert store.footprints() is None
