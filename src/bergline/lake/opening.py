"""Which catalog a URI names: one entry for each kind."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from bergline.arguments import check_text
from bergline.catalog.catalog import Catalog
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.catalog.pointer.pointer_store import CREATE_HINT, UnopenedStore, missing_catalog
from bergline.catalog.sql.sqlite_file import is_ready
from bergline.errors import InvalidInputError, NotFoundError, UnsupportedError, near_names
from bergline.format.metadata.gzip import MAX_METADATA_BYTES
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
from bergline.io.open_store import OBJECT_STORE_SCHEMES
from bergline.io.schemes import SchemeFileIO
from bergline.io.settings import PropertyReader
from bergline.io.store_properties import check_store_properties
from bergline.lazy_module import LazyModule

if TYPE_CHECKING:
    from bergline.catalog.glue import glue_catalog
    from bergline.catalog.hadoop import hadoop_catalog, hadoop_store
    from bergline.catalog.object_store import object_store
    from bergline.catalog.pointer import memory
    from bergline.catalog.rest.client import rest_catalog
    from bergline.catalog.sql import postgres, sqlite
    from bergline.io import conditional_objects, directories
    from bergline.io import memory as memory_files
else:  # a lake needs only one of these catalogs
    glue_catalog = LazyModule("bergline.catalog.glue.glue_catalog")
    hadoop_catalog = LazyModule("bergline.catalog.hadoop.hadoop_catalog")
    hadoop_store = LazyModule("bergline.catalog.hadoop.hadoop_store")
    object_store = LazyModule("bergline.catalog.object_store.object_store")
    memory = LazyModule("bergline.catalog.pointer.memory")
    rest_catalog = LazyModule("bergline.catalog.rest.client.rest_catalog")
    postgres = LazyModule("bergline.catalog.sql.postgres")
    sqlite = LazyModule("bergline.catalog.sql.sqlite")
    conditional_objects = LazyModule("bergline.io.conditional_objects")
    directories = LazyModule("bergline.io.directories")
    memory_files = LazyModule("bergline.io.memory")

_SQLITE = "sqlite:///"
_SQLITE_FILES = ("", "-wal", "-shm", "-journal")
_VERSION_HINT = "version-hint"
TOKEN_VARIABLE = "BERGLINE_TOKEN"  # noqa: S105  (the name of a variable)
_OTHER_IDENTITIES = ("token", "credential", "rest.auth.type", "header.authorization")
_PASSWORD = re.compile(r"(?<=:)[^/:@][^/@]*(?=@)")


class CatalogConfig(msgspec.Struct, frozen=True):
    """How to open a catalog; the warehouse as a directory or location, unparsed."""

    uri: str
    warehouse: str | None
    name: str
    properties: dict[str, str]
    busy_timeout_s: float
    places: tuple[str, ...] | None = None
    """The only places for files besides the warehouse, as for a server; None allows all."""
    max_metadata_bytes: int = MAX_METADATA_BYTES
    """The largest metadata file that is read, in SQLite and PostgreSQL."""
    create: bool = False
    """Whether a missing catalog is created; on REST servers, on Glue and in memory there is always one."""
    ref: str | None = None
    """The branch, tag or time at which the lake is seen."""


def portable_config(config: CatalogConfig) -> CatalogConfig:
    """The same catalog for another process on this machine, whatever its working directory; it must exist.

    UnsupportedError for a catalog in memory, which no other process has.
    """
    scheme = config.uri.partition(":")[0].lower()
    if scheme == "memory":
        raise UnsupportedError(
            "expected a catalog that other processes can open, found one in memory",
            hints=["connect to a database file: sqlite:///path/catalog.db"],
        )
    uri, warehouse = config.uri, config.warehouse
    if uri.startswith(_SQLITE):
        uri = _SQLITE + os.path.abspath(uri.removeprefix(_SQLITE))
    if warehouse is not None and scheme not in {"http", "https"}:
        warehouse = absolute_location(warehouse)
    return msgspec.structs.replace(config, uri=uri, warehouse=warehouse, create=False)


class CatalogKind(msgspec.Struct, frozen=True):
    """One kind of catalog: the schemes of its URIs, an example of a URI, and how to open it."""

    schemes: frozenset[str]
    example: str
    open: Callable[[CatalogConfig], Catalog]


def open_catalog(config: CatalogConfig) -> Catalog:
    """The catalog that the URI names; InvalidInputError says what good ones look like.

    NotFoundError of the kind CATALOG or CATALOG_NAME if it is missing and must not be created; nothing was changed
    then.
    """
    _check_warehouse(config.warehouse)
    scheme = config.uri.partition(":")[0].lower() if ":" in config.uri else ""
    for kind in KINDS:
        if scheme in kind.schemes:
            return kind.open(config)
    raise _bad_uri(config.uri)


def is_server(uri: str) -> bool:
    """Whether a catalog is the URL of a REST server."""
    return uri.lower().startswith(("http://", "https://"))


def environment_token(uri: str, properties: Mapping[str, str]) -> dict[str, str]:
    """The token in the environment for a REST server, if no other identity is given.

    Unlike a command line or a configuration, the environment cannot be seen by others.
    """
    token = os.environ.get(TOKEN_VARIABLE)
    given = {key.lower() for key in properties}
    return {"token": token} if token and is_server(uri) and given.isdisjoint(_OTHER_IDENTITIES) else {}


def _open_sqlite(config: CatalogConfig) -> Catalog:
    path = config.uri.removeprefix(_SQLITE)
    if path in {"", config.uri}:
        raise _bad_uri(config.uri)
    if path == ":memory:":
        raise InvalidInputError(
            f"expected the path of a database file, found `{config.uri}`",
            hints=["for a catalog in memory connect to `memory:`"],
        )
    if os.path.isdir(path):
        raise InvalidInputError(
            f"expected the path of a database file, found the directory `{path}`",
            hints=[f"a database in it: {_SQLITE}{os.path.join(path, 'catalog.db')}"],
        )
    if not config.create and not os.path.lexists(path):
        raise _no_file(path)
    path = os.path.abspath(path)
    warehouse = os.path.join(os.path.dirname(path), "warehouse") if config.warehouse is None else config.warehouse
    own = [path + ending for ending in _SQLITE_FILES]
    io = _fenced(config, absolute_location(warehouse), never=own)

    def open_store(*, create: bool, any_name: bool = False) -> "sqlite.SqlitePointerStore":
        return sqlite.SqlitePointerStore(
            path,
            catalog_name=config.name,
            busy_timeout_s=config.busy_timeout_s,
            create=create,
            any_name=any_name,
        )

    store: sqlite.SqlitePointerStore | UnopenedStore
    if is_ready(path, config.name, create=config.create):
        store = UnopenedStore(lambda: open_store(create=False, any_name=True), atomic_tables=True)
    else:
        store = open_store(create=config.create)
    most = config.max_metadata_bytes
    return PointerCatalog(store, io, absolute_location(warehouse), own_places=own, max_metadata_bytes=most)


def _open_postgres(config: CatalogConfig) -> Catalog:
    io = _fenced(config, _warehouse(config))
    store = postgres.PostgresPointerStore(config.uri, catalog_name=config.name, create=config.create)
    return PointerCatalog(store, io, _warehouse(config), max_metadata_bytes=config.max_metadata_bytes)


def _open_memory(config: CatalogConfig) -> Catalog:
    if config.uri not in {"memory:", "memory://"}:
        raise _bad_uri(config.uri)
    io = SchemeFileIO({"memory": memory_files.MemoryFileIO()}, properties=check_store_properties(config.properties))
    return PointerCatalog(memory.MemoryPointerStore(), io, _warehouse(config) or "memory://warehouse")


def _open_object_store(config: CatalogConfig) -> Catalog:
    if not config.uri.partition(":")[2].strip("/"):
        raise _bad_uri(config.uri)
    root, io = absolute_location(config.uri), _storage(config)
    warehouse = _warehouse(config) or join(root, "warehouse")
    home = join(root, "catalog")
    store = object_store.ObjectPointerStore(
        conditional_objects.open_objects(home, config.properties), create=config.create
    )
    return PointerCatalog(store, io, warehouse, own_places=[home])


def _open_glue(config: CatalogConfig) -> Catalog:
    return glue_catalog.open_glue_catalog(config.uri, config.properties, _warehouse(config))


def _open_version_hint(config: CatalogConfig) -> Catalog:
    if config.warehouse is not None:
        raise InvalidInputError("expected no warehouse with a version-hint catalog, which is one, found both")
    place = config.uri.removeprefix(f"{_VERSION_HINT}:")
    if not is_absolute(place):
        raise _bad_uri(config.uri)
    root = normalized(absolute_location(place))
    properties = check_store_properties(
        {k: v for k, v in config.properties.items() if k != hadoop_store.SINGLE_WRITER_PROPERTY}
    )
    text = check_text(
        config.properties.get(hadoop_store.SINGLE_WRITER_PROPERTY, "false"),
        f"text for `{hadoop_store.SINGLE_WRITER_PROPERTY}`",
    )
    single_writer = (
        PropertyReader({hadoop_store.SINGLE_WRITER_PROPERTY: text}).boolean(hadoop_store.SINGLE_WRITER_PROPERTY)
        or False
    )
    io, folders = SchemeFileIO(properties=properties), directories.directories_for(root, properties)
    if _is_missing(place):
        if not config.create:
            raise _no_directory(place)
        folders.make(root)
    return hadoop_catalog.HadoopCatalog(
        hadoop_store.HadoopPointerStore(io, folders, root, single_writer=single_writer), io, root
    )


def _open_rest(config: CatalogConfig) -> Catalog:
    return rest_catalog.RestCatalog(config.uri, config.properties, config.warehouse)


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
    """Whether a directory does not exist yet; object stores have none. InvalidInputError if it cannot be created."""
    if scheme_of(place) != "file":
        directory_location(place)
        return False
    path = local_path(place)
    if os.path.lexists(path) and not os.path.isdir(path):
        raise InvalidInputError(f"expected a directory for a version-hint catalog, found another file at `{place}`")
    return not os.path.lexists(path)


def _no_file(path: str) -> NotFoundError:
    """The error for a missing database, with similar names as hints."""
    hints = [CREATE_HINT]
    if os.path.isfile(f"/{path}"):
        hints.append(f"an absolute path has four slashes: `{_SQLITE}/{path}`")
    directory, file = os.path.split(path)
    above, name = os.path.split(directory)
    databases = [name for name in _names_in(directory) if not name.endswith(_SQLITE_FILES[1:])]
    beside = [os.path.join(directory, f) for f in near_names(file, databases)]
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


def _storage(config: CatalogConfig) -> SchemeFileIO:
    return SchemeFileIO(properties=check_store_properties(config.properties))


def _fenced(config: CatalogConfig, warehouse: str | None, never: Sequence[str] = ()) -> FileIO:
    io = _storage(config)
    if config.places is None:
        return io
    home = () if warehouse is None else (warehouse,)
    return FencedFileIO(io, (*home, *map(absolute_location, config.places)), denied=never)


def _warehouse(config: CatalogConfig) -> str | None:
    return None if config.warehouse is None else absolute_location(config.warehouse)


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
