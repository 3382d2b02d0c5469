"""Small objects that are changed only by conditional writes: only if they are still as they were read."""

import datetime as dt
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from bergline.errors import FormatError, NotFoundError, StorageError
from bergline.io.conditional_writes import Tag, WriteRefusal, put_object, tag_of
from bergline.io.locations import directory_location, join
from bergline.io.object_errors import object_errors
from bergline.io.open_store import OpenStore, check_process, open_store

_LARGEST = 1024 * 1024
_LIST_CHUNK = 1000


class StoredObject(NamedTuple):
    """The content of an object as it was read, and the store's tag for it."""

    data: bytes
    tag: Tag
    modified: dt.datetime | None = None
    """When it was written, by the store's clock; None if not requested."""


class ListedObject(NamedTuple):
    """The name of an object, and its size in bytes."""

    name: str
    size: int


class ConditionalObjects:
    """The objects below one directory of an object store, by their relative names.

    Written content must be unique among everything ever written under that name (by a UUID in it): the store's tags and
    the settling of lost responses depend on the content.
    """

    def __init__(self, store: OpenStore, directory: str) -> None:
        self.directory = directory
        self._store = store
        key = directory_location(directory).key
        self._prefix = f"{key}/" if key else ""

    def location(self, name: str) -> str:
        """The full location of an object."""
        return join(self.directory, name)

    def read(self, name: str) -> StoredObject | None:
        """Read an object; None if there is none, FormatError if it is larger than a catalog object can be."""
        check_process()
        location = self.location(name)
        try:
            with object_errors("read", location):
                response = self._store.api.get(self._store.store, self._prefix + name)
                if response.meta["size"] > _LARGEST:
                    raise FormatError(f"expected up to {_LARGEST} bytes, found {response.meta['size']} in {location}")
                return StoredObject(bytes(response.bytes()), tag_of(response.meta), response.meta["last_modified"])
        except NotFoundError as error:
            if error.kind == "file":
                return None
            raise

    def create(self, name: str, data: bytes) -> StoredObject | None:
        """Create an object; None if and only if there was one already.

        StorageError means that it may have been written, other errors that it was not.
        """
        return self._put(name, data, "create")

    def replace(self, name: str, found: StoredObject, data: bytes) -> StoredObject | None:
        """Replace an object; None if and only if it was not as it was found.

        StorageError means that it may have been written, other errors that it was not.
        """
        return self._put(name, data, found.tag)

    def names(self, directory: str) -> list[str]:
        """The names of all objects below a directory, at any depth, sorted."""
        return sorted(found.name for page in self.pages(directory) for found in page)

    def pages(self, directory: str, after: str | None = None) -> Iterator[list[ListedObject]]:
        """All objects below a directory, at any depth, or those after a name; one request per page."""
        check_process()
        key = f"{self._prefix}{directory}"
        offset = None if after is None else f"{self._prefix}{after}"
        with object_errors("list", self.location(directory)):
            for page in self._store.api.list(self._store.store, key, offset=offset, chunk_size=_LIST_CHUNK):
                yield [self._listed(o) for o in page if o["path"].startswith(f"{key}/")]

    def children(self, directory: str) -> tuple[list[ListedObject], list[str]]:
        """The objects directly in a directory, and the directories in it."""
        check_process()
        with object_errors("list", self.location(directory)):
            found = self._store.api.list_with_delimiter(self._store.store, f"{self._prefix}{directory}")
        inner = [path.rstrip("/").removeprefix(self._prefix) for path in found["common_prefixes"]]
        return [self._listed(o) for o in found["objects"]], inner

    def _listed(self, found: Mapping[str, Any]) -> ListedObject:
        return ListedObject(found["path"].removeprefix(self._prefix), found["size"])

    def delete(self, name: str) -> None:
        """Delete an object, whatever it holds; a missing one counts as deleted."""
        check_process()
        try:
            with object_errors("delete", self.location(name), changes=True):
                self._store.api.delete(self._store.store, self._prefix + name)
        except NotFoundError:
            return

    def _put(self, name: str, data: bytes, condition: Tag | Literal["create"]) -> StoredObject | None:
        check_process()
        location = self.location(name)
        match put_object(self._store, self._prefix + name, location, data, condition, unique=True):
            case WriteRefusal.REFUSED:
                return None
            case WriteRefusal.OVERTAKEN:
                raise StorageError(f"cannot find out whether {location} was written before another writer changed it")
            case tag:
                return StoredObject(data, tag)


def open_objects(directory: str, properties: Mapping[str, str]) -> ConditionalObjects:
    """Open the objects below a directory of an object store."""
    scheme, authority, _ = directory_location(directory)
    return ConditionalObjects(open_store(scheme, authority, properties), directory)
