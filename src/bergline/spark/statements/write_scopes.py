"""Which write scope each session has: that of the pipeline's step or audits that hold it, one at a time.

A scope is for all threads of a session, and for the sessions that Spark clones from it meanwhile. Clones that existed
before, such as those of running streams, are not part of it.
"""

import contextlib
import threading
from collections.abc import Iterator

import msgspec
from pyspark.sql import SparkSession

from bergline.errors import UnavailableError
from bergline.spark.backends.choose import backend_of
from bergline.spark.runtime.backend import SparkBackend
from bergline.spark.writes.scope import WriteScope
from bergline.spark.writes.target import wap_settings

_LOCKS: dict[str, threading.RLock] = {}
_SCOPES: dict[str, WriteScope | None] = {}
"""By session id. A clone is noted once, when it is first known, with the scope that its session has then, or None."""


def find_scope(spark: SparkSession) -> WriteScope | None:
    """The scope that a session has now."""
    return _SCOPES.get(backend_of(spark).session_id)


def note_clone(clone: str, origin: str) -> None:
    """Give a clone that is not known yet the scope of its session."""
    _SCOPES.setdefault(clone, _SCOPES.get(origin))


@contextlib.contextmanager
def write_scope(spark: SparkSession, scope: WriteScope, timeout_s: float) -> Iterator[None]:
    """Hold the session in the block, with this scope; the thread that holds it already may do so again.

    UnavailableError if other threads hold it until the timeout.
    """
    backend = backend_of(spark)
    key = backend.session_id
    lock = _LOCKS.setdefault(key, threading.RLock())
    if not lock.acquire(timeout=min(timeout_s, threading.TIMEOUT_MAX)):
        raise _still_held(scope, _SCOPES.get(key), timeout_s)
    try:
        _note_streams(backend)
        held = msgspec.structs.replace(scope, wap_settings=wap_settings(spark))
        before, _SCOPES[key] = _SCOPES.get(key), held
        try:
            yield
        finally:
            try:
                _note_streams(backend)
            finally:
                _end(held)
                _SCOPES[key] = before
    finally:
        lock.release()


def _end(scope: WriteScope) -> None:
    ended = msgspec.structs.replace(scope, has_ended=True)
    for session in [session for session, held in list(_SCOPES.items()) if held is scope]:
        _SCOPES[session] = ended


def _note_streams(backend: SparkBackend) -> None:
    """Note the clones in which a session's streams run: one that has no batch yet has not called any method of ours."""
    if not backend.is_stopped:
        for clone in backend.stream_sessions:
            note_clone(clone, backend.session_id)


def _still_held(wanted: WriteScope, holder: WriteScope | None, timeout_s: float) -> UnavailableError:
    return UnavailableError(
        f"cannot run {wanted}: waited {timeout_s:g} s for the session, which {holder or 'another pipeline'} holds",
        hints=[
            "a step must not wait for this: run it in the step's own thread, or on a session from `spark.newSession()`",
            "`run(…, session_timeout=…)` waits longer, in seconds",
        ],
    )
