"""Conditional create on an object store, and what to do when its answer is lost."""

import random
import time

from bergline.io.object_errors import Failure, failure_of, object_errors, panics_contained, storage_error
from bergline.io.open_store import RETRY_SECONDS, OpenStore

_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 0.1, 2.0
_TRY_AGAIN = frozenset({Failure.TRANSIENT, Failure.NOT_REACHED, Failure.CONFLICT})


def create_object(store: OpenStore, key: str, location: str, data: bytes) -> None:
    """Create the object if and only if there is none; AlreadyExistsError if there is.

    We try again ourselves instead of leaving it to obstore, to know whether an earlier try may have arrived. Only then
    can an object that exists be our own, and it is taken for ours if it has exactly our bytes. That is safe for every
    caller: if another writer created the same bytes at the same name meanwhile, the caller finds what it wanted to
    write, and metadata, manifests and data files carry UUIDs, so no two writers share a name. It is no way to elect one
    of several writers of the same bytes.
    """
    in_doubt = False
    deadline, wait = time.monotonic() + RETRY_SECONDS, _FIRST_WAIT_SECONDS
    while True:
        try:
            with panics_contained():
                store.api.put(store.once, key, data, mode="create", use_multipart=False)
        except Exception as error:  # noqa: BLE001  (obstore raises its own, OSError and ValueError; none may escape)
            failure = failure_of(error)
            if failure is Failure.EXISTS and in_doubt and _holds(store, key, location, data):
                return
            in_doubt = in_doubt or failure is Failure.TRANSIENT
            if failure not in _TRY_AGAIN or time.monotonic() + wait > deadline:
                raise storage_error("write", location, error, changes=in_doubt) from None
        else:
            return
        time.sleep(wait * random.uniform(0.5, 1))  # noqa: S311  (spreads writers, guards nothing)
        wait = min(2 * wait, _LONGEST_WAIT_SECONDS)


def _holds(store: OpenStore, key: str, location: str, data: bytes) -> bool:
    with object_errors("read", location):
        found = store.api.get(store.store, key)
        return found.meta["size"] == len(data) and bytes(found.bytes()) == data
