"""Conditional writes to an object store, settled when their responses are lost."""

import hashlib
import random
import re
import time
from collections.abc import Mapping
from enum import Enum
from typing import Any, Literal

from bergline.errors import BerglineError, NotFoundError, StorageError
from bergline.io.object_errors import (
    StoreFailure,
    exists_error,
    failure_of,
    is_certain,
    object_errors,
    panics_contained,
    storage_error,
)
from bergline.io.open_store import RETRY_SECONDS, OpenStore

_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 0.1, 2.0
_RETRYABLE = frozenset({StoreFailure.TRANSIENT, StoreFailure.NOT_REACHED, StoreFailure.CONFLICT})
_REFUSED = frozenset({StoreFailure.EXISTS, StoreFailure.CHANGED})
_STORES_OWN_TAG = re.compile(r'"?(?:0x[0-9A-F]{12,20}|[0-9]{1,20})"?')  # Azure's tags, and those of an in-memory store


Tag = dict[str, str]
"""The store's identifier of an object's content: an ETag on S3 and Azure, a generation on Google Cloud Storage."""


class WriteRefusal(Enum):
    """Why a conditional write did not happen."""

    REFUSED = "the condition did not hold, and nothing was changed"
    OVERTAKEN = "a response was lost, and now the object has other bytes: ours may have been there in between"


def put_object(
    store: OpenStore, key: str, location: str, data: bytes, condition: Tag | Literal["create"], *, unique: bool
) -> Tag | WriteRefusal:
    """Write an object if its tag matches the condition, or if there is none; returns the new tag if written.

    A conflicting object may be our own, from an earlier attempt whose response was lost: it counts as ours if it has
    exactly our bytes. If no other writer ever writes these bytes (`unique`), that also settles a request that was
    delivered twice. Retries happen here, not in obstore, to know whether an earlier attempt may have arrived and was
    overwritten since.
    StorageError means that it may have been written, other errors that it was not.
    """
    in_doubt = False
    deadline, wait = time.monotonic() + RETRY_SECONDS, _FIRST_WAIT_SECONDS
    while True:
        try:
            with panics_contained():
                response = store.api.put(store.once, key, data, mode=condition, use_multipart=False)
        except Exception as error:  # noqa: BLE001  (obstore raises its own, OSError and ValueError; none may escape)
            failure = failure_of(error)
            in_doubt = in_doubt or not is_certain(error)
            if failure in _REFUSED and not unique and not in_doubt:
                return WriteRefusal.REFUSED
            if failure not in _RETRYABLE or time.monotonic() + wait > deadline:
                return _settled(store, key, location, data, error, in_doubt=in_doubt)
        else:
            return _checked(store, key, location, data, tag_of(response))
        time.sleep(wait * random.uniform(0.5, 1))  # noqa: S311  (spreads writers, guards nothing)
        wait = min(2 * wait, _LONGEST_WAIT_SECONDS)


def create_object(store: OpenStore, key: str, location: str, data: bytes) -> None:
    """Create an object; AlreadyExistsError if there is one already.

    After a lost response, an object with our bytes counts as ours. That is safe for every caller: if another writer
    created the same bytes under the same name meanwhile, the caller finds what it wanted to write; and metadata files,
    manifests and data files have UUIDs in their names, so no two writers share a name.
    """
    if isinstance(put_object(store, key, location, data, "create", unique=False), WriteRefusal):
        raise exists_error(location)


def tag_of(response: Mapping[str, Any]) -> Tag:
    """The tag in an object's metadata."""
    return {name: response[name] for name in ("e_tag", "version") if response.get(name) is not None}


def _failed(error: BerglineError, *, in_doubt: bool) -> BerglineError:
    """The error to raise; StorageError if an earlier attempt may have arrived, whatever the last error was."""
    return StorageError(error.message, hints=error.hints) if in_doubt else error


def _settled(
    store: OpenStore, key: str, location: str, data: bytes, error: Exception, *, in_doubt: bool
) -> Tag | WriteRefusal:
    """What the last response means, judged by the object that exists now."""
    failure = failure_of(error)
    failed = _failed(storage_error("write", location, error, changes=in_doubt), in_doubt=in_doubt)
    if not in_doubt and failure not in _REFUSED:
        raise failed from None
    found = _find(store, key, location, data, is_there=failure not in _RETRYABLE)
    if isinstance(found, dict):
        return found
    if failure not in _REFUSED or (found is None and in_doubt):
        raise failed from None
    return WriteRefusal.OVERTAKEN if in_doubt else WriteRefusal.REFUSED


def _checked(store: OpenStore, key: str, location: str, data: bytes, tag: Tag) -> Tag:
    """The tag of what was written, once that is certain: a proxy's response may have a tag too."""
    if "version" in tag or _STORES_OWN_TAG.fullmatch(tag.get("e_tag", "")):
        return tag
    if tag.get("e_tag", "").strip('"') == hashlib.md5(data, usedforsecurity=False).hexdigest():
        return tag
    found = _find(store, key, location, data, is_there=True, tag=tag)
    if isinstance(found, dict):
        return found
    raise StorageError(f"cannot find out whether {location} was written: its store responded, but has other content")


def _find(
    store: OpenStore, key: str, location: str, data: bytes, *, is_there: bool, tag: Tag | None = None
) -> Tag | Literal[False] | None:
    """The tag of the object if it has these bytes, False if it has others, None if there is none; else StorageError.

    It has them if it has the tag from the response to writing them, and their length. A store that did not respond
    before (`is_there` is false) is asked once.
    """
    try:
        with object_errors("read", location):
            asked = store.store if is_there else store.once
            if tag and tag_of(head := store.api.head(asked, key)) == tag and head["size"] == len(data):
                return tag
            found = store.api.get(asked, key)
            is_same = found.meta["size"] == len(data) and bytes(found.bytes()) == data
            return tag_of(found.meta) if is_same else False
    except BerglineError as error:
        if isinstance(error, NotFoundError) and error.kind == "file":
            return None
        raise _failed(error, in_doubt=True) from error
