"""Conditional writes on an object store, and what to do when their answers are lost."""

import random
import time
from collections.abc import Mapping
from enum import Enum
from typing import Any, Literal

from bergline.errors import BerglineError, NotFoundError, StorageError
from bergline.io.object_errors import (
    Failure,
    exists_error,
    failure_of,
    object_errors,
    panics_contained,
    storage_error,
)
from bergline.io.open_store import RETRY_SECONDS, OpenStore

_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 0.1, 2.0
_TRY_AGAIN = frozenset({Failure.TRANSIENT, Failure.NOT_REACHED, Failure.CONFLICT})
_REFUSED = frozenset({Failure.EXISTS, Failure.CHANGED})


Tag = dict[str, str]
"""What a store calls the bytes of an object at one moment: an ETag on S3 and Azure, a generation on Google's."""


class Refusal(Enum):
    """Why a conditional write did not happen."""

    REFUSED = "the condition did not hold, and nothing was changed"
    OVERTAKEN = "an answer was lost, and now the object has other bytes: ours may have been there in between"


def put_object(
    store: OpenStore, key: str, location: str, data: bytes, condition: Tag | Literal["create"], *, unique: bool
) -> Tag | Refusal:
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
                return tag_of(store.api.put(store.once, key, data, mode=condition, use_multipart=False))
        except Exception as error:  # noqa: BLE001  (obstore raises its own, OSError and ValueError; none may escape)
            failure = failure_of(error)
            if failure in _REFUSED:
                if not unique and not in_doubt:
                    return Refusal.REFUSED
                return _settled(store, key, location, data, in_doubt=in_doubt)
            in_doubt = in_doubt or failure is Failure.TRANSIENT
            if failure not in _TRY_AGAIN or time.monotonic() + wait > deadline:
                raise _failed(storage_error("write", location, error, changes=in_doubt), in_doubt=in_doubt) from None
        time.sleep(wait * random.uniform(0.5, 1))  # noqa: S311  (spreads writers, guards nothing)
        wait = min(2 * wait, _LONGEST_WAIT_SECONDS)


def create_object(store: OpenStore, key: str, location: str, data: bytes) -> None:
    """Create the object if and only if there is none; AlreadyExistsError if there is.

    After a lost answer an object with our bytes counts as ours. That is safe for every caller: if another writer
    created the same bytes at the same name meanwhile, the caller finds what it wanted to write, and metadata, manifests
    and data files carry UUIDs, so no two writers share a name.
    """
    if isinstance(put_object(store, key, location, data, "create", unique=False), Refusal):
        raise exists_error(location)


def tag_of(answer: Mapping[str, Any]) -> Tag:
    """The tag in what the store says about an object."""
    return {name: answer[name] for name in ("e_tag", "version") if answer.get(name) is not None}


def _failed(error: BerglineError, *, in_doubt: bool) -> BerglineError:
    """The error; a plain StorageError where an earlier try may have arrived, whatever became of the last one."""
    return StorageError(error.message, hints=error.hints) if in_doubt else error


def _settled(store: OpenStore, key: str, location: str, data: bytes, *, in_doubt: bool) -> Tag | Refusal:
    """What a refusal means, by the object that is there now."""
    try:
        with object_errors("read", location):
            found = store.api.get(store.store, key)
            same = found.meta["size"] == len(data) and bytes(found.bytes()) == data
    except BerglineError as error:
        if not in_doubt and isinstance(error, NotFoundError) and error.kind == "file":
            return Refusal.REFUSED
        raise _failed(error, in_doubt=True) from error
    if same:
        return tag_of(found.meta)
    return Refusal.OVERTAKEN if in_doubt else Refusal.REFUSED
