"""Files on S3, Google Cloud Storage and Azure."""

import datetime as dt
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, BinaryIO, cast

from bergline.errors import BerglineError, NotFoundError
from bergline.io.conditional_writes import create_object
from bergline.io.fileio import ListedFile, check_range, check_size
from bergline.io.locations import directory_location, object_location
from bergline.io.object_errors import StoreFailure, failure_of, object_errors, panics_contained
from bergline.io.object_input import ObjectInput
from bergline.io.object_output import PART_BYTES, ObjectOutput
from bergline.io.open_store import OpenStore, check_process, open_store, settings_of
from bergline.io.settings import StoreSettings

_TAIL_BYTES = 256 * 1024
_LONGEST_RANGE = 2**62
_LIST_CHUNK = 1000
_DELETE_BATCH = 1000
_DELETE_THREADS = 16
_UNREACHABLE = frozenset({StoreFailure.NOT_REACHED, StoreFailure.NO_TLS, StoreFailure.TRANSIENT})
_HOPELESS = _UNREACHABLE | {StoreFailure.NO_BUCKET, StoreFailure.NO_IDENTITY, StoreFailure.NO_STORE}


class ObjectStoreFileIO:
    """FileIO for object stores; buckets are opened on first use, also after pickling."""

    def __init__(self, properties: Mapping[str, str] | None = None) -> None:
        self._properties = dict(properties or {})
        self._stores: dict[tuple[str, str], OpenStore] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"_properties": self._properties, "_stores": {}}

    def settings_for(self, location: str) -> StoreSettings:
        """How the bucket or container of a location is opened."""
        scheme, authority, _ = object_location(location)
        return settings_of(scheme, authority, self._properties)

    def read(self, location: str, most: int | None = None) -> bytes:
        store, key = self._find(location)
        with object_errors("read", location):
            response = store.api.get(store.store, key)
            check_size(location, response.meta["size"], most)
            return bytes(response.bytes())

    def read_range(self, location: str, offset: int, length: int) -> bytes:
        """A part of the object, in one request."""
        if offset < 0 or length <= 0 or offset + length > _LONGEST_RANGE:
            check_range(location, offset, length, self._size(location))
            return b""
        asked = {"range": (offset, offset + length)}
        response = self._get_range(location, asked)
        check_range(location, offset, length, response.meta["size"] if response else self._size(location))
        with object_errors("read", location):
            return bytes(response.bytes())

    def open_input(self, location: str) -> BinaryIO:
        """A stream over the object; the first request returns its size and its end."""
        response = self._get_range(location, {"range": {"suffix": _TAIL_BYTES}})
        size = response.meta["size"] if response else self._size(location)
        with object_errors("read", location):
            tail = bytes(response.bytes()) if response else b""
        return cast("BinaryIO", ObjectInput(location, size, tail, partial(self.read_range, location)))

    def create(self, location: str, data: bytes) -> None:
        store, key = self._find(location)
        create_object(store, key, location, data)

    def create_output(self, location: str) -> ObjectOutput:
        """A new object written in pieces; AlreadyExistsError comes on close."""
        self._find(location)
        return ObjectOutput(self, location)

    def open_upload(self, location: str) -> Any:
        """A multipart upload that sends a batch of parts at a time."""
        store, key = self._find(location)
        return store.api.open_writer(store.store, key, buffer_size=PART_BYTES, max_concurrency=1)

    def exists(self, location: str) -> bool:
        try:
            self._size(location)
        except NotFoundError:
            return False
        return True

    def delete(self, locations: Iterable[str]) -> list[str]:
        failed = []
        groups: dict[tuple[str, str], dict[str, str]] = {}
        for location in locations:
            try:
                scheme, authority, key = object_location(location)
            except BerglineError:
                failed.append(location)
            else:
                groups.setdefault((scheme, authority), {})[location] = key
        for (scheme, authority), keys in groups.items():
            failed += _delete_all(self._store(scheme, authority), keys)
        return failed

    def list(self, prefix: str) -> list[str]:
        scheme, authority, key = directory_location(prefix)
        store = self._store(scheme, authority)
        below = f"{key}/" if key else ""
        with object_errors("list", prefix):
            found = store.api.list(store.store, key or None, chunk_size=_LIST_CHUNK).collect()
        return sorted(f"{scheme}://{authority}/{o['path']}" for o in found if o["path"].startswith(below))

    def list_files(self, prefix: str) -> Iterator[ListedFile]:
        """All objects below a directory with size and time, listed by parallel requests."""
        scheme, authority, key = directory_location(prefix)
        return list_objects(self._store(scheme, authority), f"{scheme}://{authority}/", key)

    def list_level(self, directory: str) -> tuple[Sequence[str], Sequence[str]]:
        """The names of directories and objects directly below a directory, sorted."""
        scheme, authority, key = directory_location(directory)
        store = self._store(scheme, authority)
        below = f"{key}/" if key else ""
        with object_errors("list", directory):
            found = store.api.list_with_delimiter(store.store, key or None)
        paths = (found["common_prefixes"], [o["path"] for o in found["objects"]])
        directories, objects = (sorted(p[len(below) :] for p in level if p.startswith(below)) for level in paths)
        return directories, objects

    def _find(self, location: str) -> tuple[OpenStore, str]:
        scheme, authority, key = object_location(location)
        return self._store(scheme, authority), key

    def _store(self, scheme: str, authority: str) -> OpenStore:
        check_process()
        found = self._stores.get((scheme, authority))
        return found or self._stores.setdefault((scheme, authority), open_store(scheme, authority, self._properties))

    def _size(self, location: str) -> int:
        store, key = self._find(location)
        with object_errors("read", location):
            return int(store.api.head(store.store, key)["size"])

    def _get_range(self, location: str, options: dict[str, Any]) -> Any:
        """The response with an unread body; None if the object is too short for the range."""
        store, key = self._find(location)
        with object_errors("read", location):
            try:
                with panics_contained():
                    return store.api.get(store.store, key, options=options)
            except Exception as error:
                if failure_of(error) is StoreFailure.BAD_RANGE:
                    return None
                raise


def _delete_all(store: OpenStore, keys: dict[str, str]) -> list[str]:
    """Delete in batches; objects of a failed batch are retried one by one, unless that would be pointless."""
    locations = list(keys)
    failed: list[str] = []
    for start in range(0, len(locations), _DELETE_BATCH):
        batch = locations[start : start + _DELETE_BATCH]
        failure = _delete(store, [keys[location] for location in batch])
        if failure in _HOPELESS:
            return failed + locations[start:]
        if failure is not None:
            failed += _delete_each(store, {location: keys[location] for location in batch})
    return failed


def _delete_each(store: OpenStore, keys: dict[str, str]) -> list[str]:
    """Delete one by one, and stop if the store is unreachable."""
    gone = threading.Event()

    def is_deleted(key: str) -> bool:
        if gone.is_set():
            return False
        failure = _delete(store, key)
        if failure in _UNREACHABLE:
            gone.set()
        return failure is None

    with ThreadPoolExecutor(_DELETE_THREADS) as pool:
        return [
            location for location, deleted in zip(keys, pool.map(is_deleted, keys.values()), strict=True) if not deleted
        ]


def _delete(store: OpenStore, keys: str | list[str]) -> StoreFailure | None:
    """Delete one object or many; returns the failure, if any. Some stores report a missing object, and stop there."""
    try:
        with panics_contained():
            store.api.delete(store.store, keys)
    except Exception as error:  # noqa: BLE001  (why it failed is the result)
        failure = failure_of(error)
        return None if failure is StoreFailure.NO_OBJECT and isinstance(keys, str) else failure
    return None


_PAGE = 1000
_THREADS = 16
_LEVELS = 3  # levels searched for directories to list in parallel, such as partitions or hash prefixes
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def list_objects(store: OpenStore, bucket: str, key: str) -> Iterator[ListedFile]:
    """All objects below a directory key; `bucket` is the prefix of keys in locations."""
    directories = [key]
    for _ in range(_LEVELS):
        if len(directories) >= _THREADS:
            break
        below: list[str] = []
        for directory in directories:
            with object_errors("list", bucket + directory):
                found = store.api.list_with_delimiter(store.store, directory or None)
            yield from _listed(bucket, directory, found["objects"])
            below += (path for path in found["common_prefixes"] if _is_below(path, directory))
        directories = below
    yield from _list_all(store, bucket, directories)


def _list_all(store: OpenStore, bucket: str, directories: Iterable[str]) -> Iterator[ListedFile]:
    """List several directories in parallel, holding few of them in memory."""
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="bergline-listing") as pool:
        under_way: deque[Future[list[ListedFile]]] = deque()
        try:
            for directory in directories:
                under_way.append(pool.submit(_list_one, store, bucket, directory))
                if len(under_way) > _THREADS:
                    yield from under_way.popleft().result()
            while under_way:
                yield from under_way.popleft().result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _list_one(store: OpenStore, bucket: str, directory: str) -> list[ListedFile]:
    files: list[ListedFile] = []
    with object_errors("list", bucket + directory):
        for page in store.api.list(store.store, directory, chunk_size=_PAGE):
            files += _listed(bucket, directory, page)
    return files


def _listed(bucket: str, directory: str, objects: Iterable[Mapping[str, Any]]) -> list[ListedFile]:
    return [
        ListedFile(bucket + o["path"], o["size"], (o["last_modified"] - _EPOCH) // dt.timedelta(milliseconds=1))
        for o in objects
        if _is_below(o["path"], directory)
    ]


def _is_below(path: str, directory: str) -> bool:
    return not directory or path.startswith(f"{directory}/")
