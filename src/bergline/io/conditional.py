"""Small objects that are changed only under the condition that they are still as they were read."""

import datetime as dt
from collections.abc import Mapping
from typing import Literal, NamedTuple

from bergline.errors import FormatError, NotFoundError, StorageError
from bergline.io.locations import directory_location, join
from bergline.io.object_create import Tag, WriteRefusal, put_object, tag_of
from bergline.io.object_errors import object_errors
from bergline.io.open_store import OpenStore, check_process, open_store

_LARGEST = 1024 * 1024
_LIST_CHUNK = 1000


class StoredObject(NamedTuple):
    """What an object held when it was read, and the tag that the store gave to just these bytes."""

    data: bytes
    tag: Tag
    modified: dt.datetime | None = None
    """When it was written by the store's clock; None where the store was not asked."""


class ConditionalObjects:
    """The objects below one directory of an object store, by their names in it.

    Bytes that are written must be unlike all others before them at that name (by a UUID in them): the store's tags and
    the settling of lost answers go by the bytes.
    """

    def __init__(self, store: OpenStore, directory: str) -> None:
        self.directory = directory
        self._store = store
        key = directory_location(directory).key
        self._prefix = f"{key}/" if key else ""

    def location(self, name: str) -> str:
        """Where an object is, in full."""
        return join(self.directory, name)

    def read(self, name: str) -> StoredObject | None:
        """The object now; None if there is none, FormatError if it is larger than any of ours."""
        check_process()
        location = self.location(name)
        try:
            with object_errors("read", location):
                answer = self._store.api.get(self._store.store, self._prefix + name)
                if answer.meta["size"] > _LARGEST:
                    raise FormatError(f"expected up to {_LARGEST} bytes, found {answer.meta['size']} in {location}")
                return StoredObject(bytes(answer.bytes()), tag_of(answer.meta), answer.meta["last_modified"])
        except NotFoundError as error:
            if error.kind == "file":
                return None
            raise

    def create(self, name: str, data: bytes) -> StoredObject | None:
        """The new object; None if and only if there was one already.

        StorageError leaves it in doubt whether it was written, other errors say that it was not.
        """
        return self._put(name, data, "create")

    def replace(self, name: str, found: StoredObject, data: bytes) -> StoredObject | None:
        """The object with its new bytes; None if and only if it was not as it was found.

        StorageError leaves it in doubt whether it was written, other errors say that it was not.
        """
        return self._put(name, data, found.tag)

    def names(self, directory: str) -> list[str]:
        """The names of all objects below a directory, at any depth, sorted."""
        check_process()
        key = f"{self._prefix}{directory}"
        with object_errors("list", self.location(directory)):
            found = self._store.api.list(self._store.store, key, chunk_size=_LIST_CHUNK).collect()
        return sorted(o["path"].removeprefix(self._prefix) for o in found if o["path"].startswith(f"{key}/"))

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
    """The objects below a directory of an object store."""
    scheme, authority, _ = directory_location(directory)
    return ConditionalObjects(open_store(scheme, authority, properties), directory)
