"""`attach` and `detach`: a session's methods serve lake tables and pass everything else on.

The classes are patched once, classic ones and those of Spark Connect each on the first attach of such a session; which
sessions have lakes is looked up by the session's own id, so sessions that were never attached run exactly Spark's code.
Sessions that Spark clones from an attached one, as for `foreachBatch`, have its lakes: they are known by a setting that
clones get a copy of. `newSession` of an attached session gives one with the same lakes. The last detach restores the
classes.
"""

import contextlib
import copy
import functools
import threading
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.errors import PySparkException
from pyspark.errors.exceptions import captured
from pyspark.sql import SparkSession

from bergline.arguments import check_text, shown
from bergline.catalog.catalog import LoadedTable
from bergline.catalog.identifiers import TableName
from bergline.errors import BerglineError, InvalidInputError, UnsupportedError
from bergline.io.locations import scheme_of
from bergline.lake.lake import Lake
from bergline.spark.backends.choose import backend_of, session_backend
from bergline.spark.backends.classic.query_errors import forget_queries, with_written_text
from bergline.spark.pushdown.provenance import with_unmarked_plans
from bergline.spark.reads.cached import CACHED
from bergline.spark.reads.errors import forget_scans, with_missing_files
from bergline.spark.reads.following import STATES
from bergline.spark.reads.native import spark_location
from bergline.spark.reads.relations import KEPT
from bergline.spark.runtime.backend import PatchedClasses, SparkBackend, check_running
from bergline.spark.runtime.callbacks import with_callback_errors
from bergline.spark.runtime.errors import near_names_noted, spark_errors, with_busy_machines
from bergline.spark.session.configured_lakes import (
    PREFIX,
    SESSION_SETTING,
    ConfiguredLakes,
    close_lakes,
    connect_lakes,
    read_lakes,
)
from bergline.spark.session.lake_methods import Replacement, lake_methods
from bergline.spark.session.session import LakeSession
from bergline.spark.statements.functions import SessionFunctions
from bergline.spark.statements.write_scopes import note_clone
from bergline.sql.names.resolve import Current
from bergline.table.commits.commit import WATCHERS

_NEW_SESSION = "newSession"


class _Attached:
    """The lakes of one session and its clones, what USE said in each of them, and the settings to put back."""

    def __init__(self, backend: SparkBackend, parent: str | None = None) -> None:
        self.backend = backend
        self.lakes: dict[str, Lake] = {}
        self.default = ""
        self.parent = parent
        """The session whose `newSession` gave this one, which is detached with it."""
        self.inherited: frozenset[str] = frozenset()
        """The lakes that came from there, whose names are free for lakes of this session's own."""
        self.current: dict[str, Current] = {backend.session_id: Current()}
        self.functions: dict[str, SessionFunctions] = {backend.session_id: SessionFunctions()}
        self.confs = {key: backend.spark.conf.get(key, None) for key in backend.lasting_settings}


_LOCK = threading.RLock()
_SESSIONS: dict[str, _Attached] = {}
_CLONES: dict[str, str | None] = {}
"""Sessions that were not attached themselves: the one that each is a clone of, None for those that are of none."""
_ORIGINALS: dict[tuple[Any, str], Callable[..., Any]] = {}


def attach(
    spark: SparkSession, lake: Lake | None = None, *, name: str | None = None, default: bool = True
) -> SparkSession:
    """Make a lake's tables known to a session and return the session.

    The lake is reached as `name.db.orders` (by default its own name), and as `db.orders` if it is the default.
    The name of a lake that was closed is free, and a lake that was connected again takes the place of the first.
    Without a lake, those of the session's configuration are connected and attached: `spark.bergline.<name>.uri`.
    """
    backend = session_backend(spark)
    check_running(backend)
    if lake is None:
        if name is not None:
            raise InvalidInputError(f"expected a lake to be attached as {shown(name)}, found none")
        _attach_configured(backend, default=default)
        return spark
    _check_lake(lake)
    lake_name = lake.name if name is None else _checked_name(name)
    with _LOCK:
        _attach(backend, {lake_name: lake}, lake_name if default else None)
    return spark


def attach_lakes(spark: SparkSession, configured: ConfiguredLakes) -> SparkSession:
    """Connect and attach lakes, all or none, and return the session."""
    backend = session_backend(spark)
    check_running(backend)
    _attach_opened(backend, configured, configured.default)
    return spark


def is_attached(spark: SparkSession) -> bool:
    """Whether a session has lakes."""
    return _find_attached(session_backend(spark)) is not None


def check_attached(spark: SparkSession, lake: Lake) -> None:
    """InvalidInputError unless the session runs and knows the lake."""
    backend = session_backend(spark)
    check_running(backend)
    attached = _find_attached(backend)
    if attached is None or lake not in attached.lakes.values():
        raise InvalidInputError(
            f"expected a session that {lake!r} is attached to, found one that does not know it",
            hints=["`bergline.spark.attach(spark, lake)` first"],
        )


def detach(spark: SparkSession) -> None:
    """Forget the lakes of a session and its clones, and put its settings back; a clone is detached alone.

    The last detach restores Spark's classes.
    """
    backend = session_backend(spark)
    with _LOCK:
        if _find_attached(backend) is None:
            return
        session = None if backend.is_stopped else _lake_session(backend)
        if session is not None:
            session.functions.drop(session.queries)
        key = backend.session_id
        attached = _SESSIONS.get(key)
        gone = [_SESSIONS.pop(session) for session in _with_children(key) if session in _SESSIONS]
        _CLONES[key] = None
        for clone in [clone for clone, origin in _CLONES.items() if origin is not None and origin not in _SESSIONS]:
            del _CLONES[clone]
        if not backend.is_stopped:
            _put_settings(spark, {**(attached.confs if attached else {}), SESSION_SETTING: None})
        if not _SESSIONS:
            for (owner, method), original in _ORIGINALS.items():
                setattr(owner, method, original)
            _ORIGINALS.clear()
            _CLONES.clear()
            forget_scans()
            forget_queries()
            KEPT.clear()
            CACHED.clear()
            STATES.clear()
            WATCHERS.remove(_refresh_cached)
        kept = [lake for other in _SESSIONS.values() for lake in other.lakes.values()]
        close_lakes([lake for session in gone for lake in session.lakes.values()], kept)


def _attach_configured(backend: SparkBackend, *, default: bool) -> None:
    """Attach what the session's configuration names."""
    configured = read_lakes(backend.settings_under(PREFIX))
    if configured is None:
        raise InvalidInputError(
            "expected a lake, or the settings of one in the session's configuration, found neither",
            hints=[f"set `{PREFIX}lake.uri`", "`bergline.spark.attach(spark, bergline.connect(…))`"],
        )
    _attach_opened(backend, configured, configured.default if default else None)


def _attach_opened(backend: SparkBackend, configured: ConfiguredLakes, default: str | None) -> None:
    with _LOCK:
        lakes = connect_lakes(configured.lakes)
        try:
            for lake in lakes.values():
                _check_lake(lake)
            _attach(backend, lakes, default)
        except BerglineError:
            kept = [lake for other in _SESSIONS.values() for lake in other.lakes.values()]
            close_lakes(list(lakes.values()), kept)
            raise


def _attach(backend: SparkBackend, lakes: Mapping[str, Lake], default: str | None) -> None:
    """Attach lakes, all or none; the first is the default if there is none."""
    attached = _SESSIONS.get(backend.session_id) or _first_attached(backend)
    for name, lake in lakes.items():
        before = attached.lakes.get(name, lake)
        if not lake.same_as(before) and not before.is_closed and name not in attached.inherited:
            raise InvalidInputError(
                f"expected a free name, found another lake attached as `{name}`",
                hints=["give this one another `name=`", "`detach(spark)`, or close the other lake, if it is done with"],
            )
    attached.lakes.update(lakes)
    attached.inherited -= lakes.keys()
    attached.default = default or attached.default or next(iter(lakes))
    _note_attached(backend, attached)


def _note_attached(backend: SparkBackend, attached: _Attached) -> None:
    _SESSIONS[backend.session_id] = attached
    _put_settings(backend.spark, {**backend.lasting_settings, SESSION_SETTING: backend.session_id})
    backend.use_this_python()
    _patch_classes(backend.patched_classes)


def _with_children(key: str) -> list[str]:
    """A session, those that its `newSession` gave, and theirs in turn."""
    found = [key]
    for parent in found:
        found += [session for session, attached in _SESSIONS.items() if attached.parent == parent]
    return found


def _new_session(session: LakeSession, original: Callable[..., SparkSession], spark: SparkSession) -> SparkSession:
    """A session with the same lakes, in which USE has said nothing yet."""
    new = original(spark)
    backend, parent = backend_of(new), session.backend
    with _LOCK:
        origin = _find_attached(parent)
        if origin is not None:
            attached = _Attached(backend, _CLONES.get(parent.session_id) or parent.session_id)
            attached.lakes, attached.default = dict(origin.lakes), origin.default
            attached.inherited = frozenset(origin.lakes)
            _note_attached(backend, attached)
    return new


def _put_settings(spark: SparkSession, values: Mapping[str, str | None]) -> None:
    """Set these, and unset those that are None."""
    for key, value in values.items():
        if value is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, value)


def _patch_classes(classes: PatchedClasses) -> None:
    if (classes.session, "sql") in _ORIGINALS:
        return
    for (owner, method), replacement in lake_methods(classes).items():
        _patch(owner, method, replacement)
    if hasattr(classes.session, _NEW_SESSION):  # Spark Connect has none
        _patch(classes.session, _NEW_SESSION, _new_session)
    if (captured, "convert_exception") not in _ORIGINALS:
        # all errors of Java come by here, whatever the action and the frame
        _ORIGINALS[captured, "convert_exception"] = captured.convert_exception
        convert = with_callback_errors(
            with_busy_machines(with_missing_files(with_written_text(captured.convert_exception)))
        )
        captured.convert_exception = convert  # type: ignore[assignment]
        _ORIGINALS[PySparkException, "_log_exception"] = log = PySparkException._log_exception  # noqa: SLF001
        PySparkException._log_exception = with_unmarked_plans(log)  # type: ignore[assignment, method-assign]  # noqa: SLF001
        WATCHERS.append(_refresh_cached)


def _refresh_cached(table: LoadedTable) -> None:
    """Have Spark read again what it has cached of a table that has changed; its cache is that of all sessions."""
    for attached in list(_SESSIONS.values()):
        with contextlib.suppress(Exception):  # no cache has files of a place that Spark does not know
            if not attached.backend.is_stopped:
                attached.backend.refresh_cached(spark_location(table.metadata.location))
                return


def _patch(owner: type[Any], method: str, replacement: Replacement) -> None:
    original = getattr(owner, method)
    _ORIGINALS[owner, method] = original

    @functools.wraps(original)
    def patched(self: Any, *args: Any, **kwargs: Any) -> Any:
        session = _lake_session(backend_of(self))
        if session is None:
            return original(self, *args, **kwargs)
        with spark_errors(), near_names_noted(session.lakes):
            return replacement(session, original, self, *args, **kwargs)

    setattr(owner, method, patched)


def _first_attached(backend: SparkBackend) -> _Attached:
    """A session's first attach; a clone that gets a lake of its own keeps those that it has."""
    origin, attached = _find_attached(backend), _Attached(backend)
    if origin is not None:
        attached.lakes, attached.default = dict(origin.lakes), origin.default
        attached.current = {backend.session_id: origin.current[backend.session_id]}
        attached.functions = {backend.session_id: origin.functions[backend.session_id]}
    return attached


def _find_attached(backend: SparkBackend) -> _Attached | None:
    """What a session has, or the session that it is a clone of."""
    key = backend.session_id
    attached = _SESSIONS.get(key)
    if attached is not None or backend.is_stopped:
        return attached
    with _LOCK:
        if key not in _CLONES:
            origin = str(backend.spark.conf.get(SESSION_SETTING, ""))
            _CLONES[key] = origin if origin in _SESSIONS else None
        found = _CLONES[key]
        if found is None:
            return None
        attached = _SESSIONS[found]
        attached.current.setdefault(key, copy.copy(attached.current[found]))
        attached.functions.setdefault(key, attached.functions[found].copied())
        note_clone(key, found)
        return attached


def _lake_session(backend: SparkBackend) -> LakeSession | None:
    attached = _find_attached(backend)
    if attached is None:
        return None
    with spark_errors():
        check_running(backend)
    original = _ORIGINALS[backend.patched_classes.session, "sql"]
    current, functions = attached.current[backend.session_id], attached.functions[backend.session_id]
    run_sql = functools.partial(original, backend.spark)
    return LakeSession(backend, attached.lakes, attached.default, current, functions=functions, run_sql=run_sql)


def _checked_name(name: str) -> str:
    if not check_text(name, "text for the name of the lake"):
        raise InvalidInputError("expected a name for the lake, found empty text")
    return name


def _check_lake(lake: Lake) -> None:
    """Executors are other processes: they cannot reach files in this one's memory."""
    if not isinstance(lake, Lake):
        raise InvalidInputError(
            f"expected a lake, found {shown(lake)}", hints=["`bergline.connect(…)` gives the lake of a catalog"]
        )
    if lake.is_closed:
        raise InvalidInputError("expected an open lake, found one that was closed")
    try:
        location = lake.catalog.default_location(TableName(("any",), "table"))
    except BerglineError:  # only a lake in memory always says where new tables go
        return
    if scheme_of(location) == "memory":
        raise UnsupportedError(
            f"expected a lake whose files Spark can reach, found them in memory at {location}",
            hints=["connect to sqlite:///path/catalog.db, or give a warehouse on disk"],
        )
