"""Conditional writes on an object store, and what to do when their answers are lost."""

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
_TRY_AGAIN = frozenset({StoreFailure.TRANSIENT, StoreFailure.NOT_REACHED, StoreFailure.CONFLICT})
_REFUSED = frozenset({StoreFailure.EXISTS, StoreFailure.CHANGED})
_STORES_OWN_TAG = re.compile(
    r'"?(?:0x[0-9A-F]{12,20}|[0-9]{1,20})"?'
)  # Azure's, and what a store in this process counts


Tag = dict[str, str]
"""What a store calls the bytes of an object at one moment: an ETag on S3 and Azure, a generation on Google's."""


class WriteRefusal(Enum):
    """Why a conditional write did not happen."""

    REFUSED = "the condition did not hold, and nothing was changed"
    OVERTAKEN = "an answer was lost, and now the object has other bytes: ours may have been there in between"


def put_object(
    store: OpenStore, key: str, location: str, data: bytes, condition: Tag | Literal["create"], *, unique: bool
) -> Tag | WriteRefusal:
    """Write the object if it has the tag of the condition, or if there is none; its new tag if it was written.

    An object that stands against ours may be our own, of an earlier try whose answer was lost: it is taken for ours if
    it has exactly our bytes. Where no other writer ever writes these bytes (`unique`) that also settles a request that
    was delivered twice on the way. We try again ourselves instead of leaving it to obstore, to know whether an earlier
    try may have arrived and was overwritten since.
    StorageError leaves it in doubt whether anything was written; other errors say that nothing was.
    """
    in_doubt = False
    deadline, wait = time.monotonic() + RETRY_SECONDS, _FIRST_WAIT_SECONDS
    while True:
        try:
            with panics_contained():
                answer = store.api.put(store.once, key, data, mode=condition, use_multipart=False)
        except Exception as error:  # noqa: BLE001  (obstore raises its own, OSError and ValueError; none may escape)
            failure = failure_of(error)
            in_doubt = in_doubt or not is_certain(error)
            if failure in _REFUSED and not unique and not in_doubt:
                return WriteRefusal.REFUSED
            if failure not in _TRY_AGAIN or time.monotonic() + wait > deadline:
                return _settled(store, key, location, data, error, in_doubt=in_doubt)
        else:
            return _checked(store, key, location, data, tag_of(answer))
        time.sleep(wait * random.uniform(0.5, 1))  # noqa: S311  (spreads writers, guards nothing)
        wait = min(2 * wait, _LONGEST_WAIT_SECONDS)


def create_object(store: OpenStore, key: str, location: str, data: bytes) -> None:
    """Create the object if and only if there is none; AlreadyExistsError if there is.

    After a lost answer an object with our bytes counts as ours. That is safe for every caller: if another writer
    created the same bytes at the same name meanwhile, the caller finds what it wanted to write, and metadata, manifests
    and data files carry UUIDs, so no two writers share a name.
    """
    if isinstance(put_object(store, key, location, data, "create", unique=False), WriteRefusal):
        raise exists_error(location)


def tag_of(answer: Mapping[str, Any]) -> Tag:
    """The tag in what the store says about an object."""
    return {name: answer[name] for name in ("e_tag", "version") if answer.get(name) is not None}


def _failed(error: BerglineError, *, in_doubt: bool) -> BerglineError:
    """The error; a plain StorageError where an earlier try may have arrived, whatever became of the last one."""
    return StorageError(error.message, hints=error.hints) if in_doubt else error


def _settled(
    store: OpenStore, key: str, location: str, data: bytes, error: Exception, *, in_doubt: bool
) -> Tag | WriteRefusal:
    """What the last answer means, by the object that is there now."""
    failure = failure_of(error)
    failed = _failed(storage_error("write", location, error, changes=in_doubt), in_doubt=in_doubt)
    if not in_doubt and failure not in _REFUSED:
        raise failed from None
    found = _find(store, key, location, data, is_there=failure not in _TRY_AGAIN)
    if isinstance(found, dict):
        return found
    if failure not in _REFUSED or (found is None and in_doubt):
        raise failed from None
    return WriteRefusal.OVERTAKEN if in_doubt else WriteRefusal.REFUSED


def _checked(store: OpenStore, key: str, location: str, data: bytes, tag: Tag) -> Tag:
    """The tag of what was written, once it is certain that it was: a page of a proxy may have a tag too."""
    if "version" in tag or _STORES_OWN_TAG.fullmatch(tag.get("e_tag", "")):
        return tag
    if tag.get("e_tag", "").strip('"') == hashlib.md5(data, usedforsecurity=False).hexdigest():
        return tag
    found = _find(store, key, location, data, is_there=True, tag=tag)
    if isinstance(found, dict):
        return found
    raise StorageError(f"cannot find out whether {location} was written: its store answered, and has something else")


def _find(
    store: OpenStore, key: str, location: str, data: bytes, *, is_there: bool, tag: Tag | None = None
) -> Tag | Literal[False] | None:
    """The tag of the object if it has these bytes, False if it has others, None if there is none; StorageError else.

    It has them if it has the tag that came with the answer to writing them, and their length. A store that did not
    answer before (`is_there` is false) is asked once.
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
