"""Listing many objects: directories side by side, each a page at a time."""

import datetime as dt
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from bergline.io.fileio import ListedFile
from bergline.io.object_errors import object_errors
from bergline.io.open_store import OpenStore

_PAGE = 1000
_THREADS = 16
_LEVELS = 3  # that are looked through for directories to share out: of partitions, say, or of hashes
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def list_objects(store: OpenStore, bucket: str, key: str) -> Iterator[ListedFile]:
    """All objects below a key, which is a directory; `bucket` is what stands before keys in locations."""
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
    """Several directories at a time; few of them are held in memory."""
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
