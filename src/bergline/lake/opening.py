"""Which catalog a URI names: one entry for each kind."""

import os
import re
from collections.abc import Callable, Sequence

import msgspec

from bergline.arguments import check_text
from bergline.catalog.catalog import Catalog
from bergline.catalog.glue.glue_catalog import GlueCatalog
from bergline.catalog.hadoop.hadoop_catalog import VersionHintCatalog
from bergline.catalog.hadoop.pointers import SINGLE_WRITER_PROPERTY, VersionHintStore
from bergline.catalog.object_store.object_store import ObjectPointerStore
from bergline.catalog.pointer.memory import MemoryPointerStore
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.catalog.pointer.pointer_store import CREATE_HINT, missing_catalog
from bergline.catalog.rest.client.rest_catalog import RestCatalog
from bergline.catalog.sql.postgres import PostgresPointerStore
from bergline.catalog.sql.sqlite import SqlitePointerStore
from bergline.errors import InvalidInputError, NotFoundError, near_names
from bergline.format.metadata.gzip import MAX_METADATA_BYTES
from bergline.io.conditional import open_objects
from bergline.io.directories import directories_for
from bergline.io.fenced import FencedFileIO
from bergline.io.fileio import FileIO
from bergline.io.locations import (
    absolute_location,
    directory_location,
    is_absolute,
    join,
    local_path,
    normalized,
    scheme_of,
)
from bergline.io.memory import MemoryFileIO
from bergline.io.open_store import OBJECT_STORE_SCHEMES
from bergline.io.schemes import SchemeFileIO
from bergline.io.settings import PropertyReader
from bergline.io.store_properties import check_store_properties

_SQLITE = "sqlite:///"
_SQLITE_FILES = ("", "-wal", "-shm", "-journal")
_VERSION_HINT = "version-hint"
_PASSWORD = re.compile(r"(?<=:)[^/:@][^/@]*(?=@)")


class CatalogWish(msgspec.Struct, frozen=True):
    """What the user asked for; the warehouse as a directory or location, unread."""

    uri: str
    warehouse: str | None
    name: str
    properties: dict[str, str]
    busy_timeout_s: float
    places: tuple[str, ...] | None = None
    """The only places for files, beside the warehouse, as for a server; None leaves all open."""
    max_metadata_bytes: int = MAX_METADATA_BYTES
    """The largest metadata file that is read, in SQLite and PostgreSQL."""
    create: bool = False
    """Whether a catalog that is missing is made; of REST servers, of Glue and in memory nothing is missing."""


class CatalogKind(msgspec.Struct, frozen=True):
    """One kind of catalog: the schemes of its URIs, what a URI looks like, and how to open one."""

    schemes: frozenset[str]
    example: str
    open: Callable[[CatalogWish], Catalog]


def open_catalog(wish: CatalogWish) -> Catalog:
    """The catalog that the URI names; InvalidInputError says what good ones look like.

    NotFoundError of the kind CATALOG or CATALOG_NAME if it is missing and not to be created: then nothing was changed.
    """
    _check_warehouse(wish.warehouse)
    scheme = wish.uri.partition(":")[0].lower() if ":" in wish.uri else ""
    for kind in KINDS:
        if scheme in kind.schemes:
            return kind.open(wish)
    raise _bad_uri(wish.uri)


def _open_sqlite(wish: CatalogWish) -> Catalog:
    path = wish.uri.removeprefix(_SQLITE)
    if path in {"", wish.uri}:
        raise _bad_uri(wish.uri)
    if path == ":memory:":
        raise InvalidInputError(
            f"expected the path of a database file, found `{wish.uri}`",
            hints=["for a catalog in memory connect to `memory:`"],
        )
    if os.path.isdir(path):
        raise InvalidInputError(
            f"expected the path of a database file, found the directory `{path}`",
            hints=[f"a database in it: {_SQLITE}{os.path.join(path, 'catalog.db')}"],
        )
    if not wish.create and not os.path.lexists(path):
        raise _no_file(path)
    path = os.path.abspath(path)
    warehouse = os.path.join(os.path.dirname(path), "warehouse") if wish.warehouse is None else wish.warehouse
    own = [path + ending for ending in _SQLITE_FILES]
    io = _fenced(wish, absolute_location(warehouse), never=own)
    store = SqlitePointerStore(path, catalog_name=wish.name, busy_timeout_s=wish.busy_timeout_s, create=wish.create)
    most = wish.max_metadata_bytes
    return PointerCatalog(store, io, absolute_location(warehouse), own_places=own, max_metadata_bytes=most)


def _open_postgres(wish: CatalogWish) -> Catalog:
    io = _fenced(wish, _warehouse(wish))
    store = PostgresPointerStore(wish.uri, catalog_name=wish.name, create=wish.create)
    return PointerCatalog(store, io, _warehouse(wish), max_metadata_bytes=wish.max_metadata_bytes)


def _open_memory(wish: CatalogWish) -> Catalog:
    if wish.uri not in {"memory:", "memory://"}:
        raise _bad_uri(wish.uri)
    io = SchemeFileIO({"memory": MemoryFileIO()}, properties=check_store_properties(wish.properties))
    return PointerCatalog(MemoryPointerStore(), io, _warehouse(wish) or "memory://warehouse")


def _open_object_store(wish: CatalogWish) -> Catalog:
    if not wish.uri.partition(":")[2].strip("/"):
        raise _bad_uri(wish.uri)
    root, io = absolute_location(wish.uri), _storage(wish)
    warehouse = _warehouse(wish) or join(root, "warehouse")
    home = join(root, "catalog")
    store = ObjectPointerStore(open_objects(home, wish.properties), create=wish.create)
    return PointerCatalog(store, io, warehouse, own_places=[home])


def _open_glue(wish: CatalogWish) -> Catalog:
    return GlueCatalog(wish.uri, wish.properties, _warehouse(wish))


def _open_version_hint(wish: CatalogWish) -> Catalog:
    if wish.warehouse is not None:
        raise InvalidInputError("expected no warehouse with a version-hint catalog, which is one, found both")
    place = wish.uri.removeprefix(f"{_VERSION_HINT}:")
    if not is_absolute(place):
        raise _bad_uri(wish.uri)
    root = normalized(absolute_location(place))
    properties = check_store_properties({k: v for k, v in wish.properties.items() if k != SINGLE_WRITER_PROPERTY})
    told = check_text(wish.properties.get(SINGLE_WRITER_PROPERTY, "false"), f"text for `{SINGLE_WRITER_PROPERTY}`")
    single_writer = PropertyReader({SINGLE_WRITER_PROPERTY: told}).boolean(SINGLE_WRITER_PROPERTY) or False
    io, directories = SchemeFileIO(properties=properties), directories_for(root, properties)
    if _is_missing(place):
        if not wish.create:
            raise _no_directory(place)
        directories.make(root)
    return VersionHintCatalog(VersionHintStore(io, directories, root, single_writer=single_writer), io, root)


def _open_rest(wish: CatalogWish) -> Catalog:
    return RestCatalog(wish.uri, wish.properties, wish.warehouse)


KINDS = (
    CatalogKind(frozenset({"sqlite"}), "sqlite:///path/catalog.db", _open_sqlite),
    CatalogKind(frozenset({"postgresql", "postgres"}), "postgresql://user@host:5432/database", _open_postgres),
    CatalogKind(frozenset({"memory"}), "memory:", _open_memory),
    CatalogKind(frozenset(OBJECT_STORE_SCHEMES), "s3://bucket/lake", _open_object_store),
    CatalogKind(frozenset({"file", _VERSION_HINT}), "file:///path/warehouse", _open_version_hint),
    CatalogKind(frozenset({"glue"}), "glue://us-east-1", _open_glue),
    CatalogKind(frozenset({"http", "https"}), "https://host/path", _open_rest),
)


def _check_warehouse(warehouse: str | None) -> None:
    """Refuse what looks like a location and would be read as a path."""
    scheme, colon, _ = (warehouse or "").partition(":")
    if warehouse and colon and scheme.lower() in {*OBJECT_STORE_SCHEMES, "file"} and not is_absolute(warehouse):
        raise InvalidInputError(f"expected a warehouse like `{scheme}://bucket/path`, found `{warehouse}`")


def _is_missing(place: str) -> bool:
    """Whether a directory has yet to be made; object stores have none. InvalidInputError where none can be."""
    if scheme_of(place) != "file":
        directory_location(place)
        return False
    path = local_path(place)
    if os.path.lexists(path) and not os.path.isdir(path):
        raise InvalidInputError(f"expected a directory for a version-hint catalog, found another file at `{place}`")
    return not os.path.lexists(path)


def _no_file(path: str) -> NotFoundError:
    """The error for a database that is missing, with those that are near."""
    hints = [CREATE_HINT]
    if os.path.isfile(f"/{path}"):
        hints.append(f"an absolute path has four slashes: `{_SQLITE}/{path}`")
    directory, file = os.path.split(path)
    above, name = os.path.split(directory)
    beside = [os.path.join(directory, f) for f in near_names(file, _names_in(directory))]
    elsewhere = [os.path.join(above, d, file) for d in near_names(name, _names_in(above))]
    near = [f"`{_SQLITE}{p}`" for p in (*beside, *elsewhere) if os.path.isfile(p)]
    if near:
        hints.append(f"did you mean {', '.join(near)}?")
    uri = _SQLITE + path
    return missing_catalog(f"no catalog at `{uri}`: no such file", uri, hints=hints)


def _no_directory(place: str) -> NotFoundError:
    above, name = os.path.split(os.path.normpath(local_path(place)))
    beside = [os.path.join(above, d) for d in near_names(name, _names_in(above))]
    near = [f"`file://{p}`" for p in beside if os.path.isdir(p)]
    hints = [CREATE_HINT, f"did you mean {', '.join(near)}?"] if near else [CREATE_HINT]
    return missing_catalog(f"no catalog at `{place}`: no such directory", place, hints=hints)


def _names_in(directory: str) -> list[str]:
    try:
        return os.listdir(directory or ".")
    except OSError:
        return []


def _storage(wish: CatalogWish) -> SchemeFileIO:
    return SchemeFileIO(properties=check_store_properties(wish.properties))


def _fenced(wish: CatalogWish, warehouse: str | None, never: Sequence[str] = ()) -> FileIO:
    io = _storage(wish)
    if wish.places is None:
        return io
    home = () if warehouse is None else (warehouse,)
    return FencedFileIO(io, (*home, *map(absolute_location, wish.places)), never=never)


def _warehouse(wish: CatalogWish) -> str | None:
    return None if wish.warehouse is None else absolute_location(wish.warehouse)


def _bad_uri(uri: str) -> InvalidInputError:
    scheme = uri.partition(":")[0]
    hints = []
    if scheme.lower() == "sqlite":
        hints.append("a relative path has three slashes, an absolute one four: sqlite:////data/lake/catalog.db")
    elif scheme.partition("+")[0] in {"postgresql", "postgres"}:
        hints.append("the driver is always psycopg: leave it out")
    elif ":" not in uri and uri:
        hints.append(f"for a database file write {_SQLITE}{uri}")
    return InvalidInputError(f"expected a catalog like {_examples()}, found `{_without_password(uri)}`", hints=hints)


def _examples() -> str:
    return " or ".join(f"`{kind.example}`" for kind in KINDS)


def _without_password(uri: str) -> str:
    return _PASSWORD.sub("***", uri)
