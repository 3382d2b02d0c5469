"""Tables by name."""

import time

from bergline.catalog.catalog import LoadedTable
from bergline.catalog.identifiers import TableName, parse_table_name
from bergline.catalog.pointer.named_pointers import check_namespace
from bergline.catalog.rest.protocol.bodies import (
    CreateTableRequest,
    IdentifiersAnswer,
    MetricsRequest,
    RegisterTableRequest,
    RenameRequest,
)
from bergline.catalog.rest.protocol.messages import renamed_onto
from bergline.catalog.sql.pointers import SqlPointers
from bergline.errors import AlreadyExistsError, ConflictError, NotFoundError
from bergline.io.local import is_gone, make_directory
from bergline.io.locations import join
from bergline.server.cache.loads import check_mode, entity_tag, matches
from bergline.server.cache.responses import KeptAnswer
from bergline.server.handlers.context import Served
from bergline.server.handlers.credentials import end_for, keys_for, known_keys_for, made_with_keys, wants_keys
from bergline.server.handlers.load_responses import load_answer, not_modified, waits_for_packing
from bergline.server.handlers.new_tables import new_name, new_table
from bergline.server.http.paging import page_token, wanted_page
from bergline.server.http.request import Call
from bergline.server.http.response import NO_CONTENT, Answer, answer_json
from bergline.table.orphans.purge import purge_table

_TRIES = 100


def list_tables(served: Served, call: Call) -> Answer:
    """Those in a namespace."""
    return names_answer(served, served.store, call)


def create_table(served: Served, call: Call) -> Answer:
    """A new table, or one that is only staged."""
    asked: CreateTableRequest = call.read()
    name = new_name(call.namespace, asked.name)
    served.catalog.check_free(name)
    metadata = new_table(served, name, asked, time.time_ns() // 1_000_000)
    served.check_table(name, metadata)
    if asked.stage_create:
        make_directory(join(metadata.location, "metadata"))  # DuckDB writes there, and makes none
        staged = Answer(200, served.loads.render_table(None, metadata))
        return made_with_keys(served, call, name, staged, metadata)
    made = served.catalog.create_table(name, metadata)
    return made_with_keys(served, call, name, table_answer(served, made), made.metadata)


def load_table(served: Served, call: Call) -> Answer:
    """A table, or that it is as the client knows it."""
    name, mode = call.table, check_mode(call.query.get("snapshots"))
    while True:
        pointer = served.catalog.pointer(name)
        if is_gone(pointer):
            _check_moved(served, name, pointer)
            continue
        try:
            keys = keys_for(served, name, pointer) if wants_keys(served, call) else None
            tag = entity_tag(pointer, mode, keys)
            if matches(tag, call.headers.get("if-none-match")):
                return not_modified(tag)
            kept = _load(served, pointer, mode)
            return load_answer(served, call, kept, tag=tag, end=end_for(served, name, keys))
        except NotFoundError:
            _check_moved(served, name, pointer)


def load_at_once(served: Served, call: Call) -> Answer | None:
    """The answer of a load where it takes no waiting: a row of SQLite, and bytes in memory; None where it would."""
    name = call.table
    pointer = served.store.read_at_once(name)
    if pointer is None or is_gone(pointer):
        return None
    mode = check_mode(call.query.get("snapshots"))
    keys = None
    if wants_keys(served, call) and (keys := known_keys_for(served, pointer)) is None:
        return None
    tag = entity_tag(pointer, mode, keys)
    if matches(tag, call.headers.get("if-none-match")):
        return not_modified(tag)
    known = served.loads.known_table(pointer, mode, unless=lambda kept: waits_for_packing(call, kept))
    return None if known is None else load_answer(served, call, known, tag=tag, end=end_for(served, name, keys))


def table_exists(served: Served, call: Call) -> Answer:
    """Whether it exists."""
    served.catalog.pointer(call.table)
    return NO_CONTENT


def drop_table(served: Served, call: Call) -> Answer:
    """Forget a table, and delete its files if that is asked for."""
    if call.flag("purgeRequested"):
        purge_table(served.catalog, call.table)
    else:
        served.catalog.drop_table(call.table)
    return NO_CONTENT


def register_table(served: Served, call: Call) -> Answer:
    """A table that exists, by its metadata file."""
    asked: RegisterTableRequest = call.read()
    name = new_name(call.namespace, asked.name)
    served.check_metadata(asked.metadata_location)
    served.check_table(name, served.catalog.metadata_at(asked.metadata_location))
    register = served.catalog.register_over if asked.overwrite else served.catalog.register_table
    made = register(name, asked.metadata_location)
    return made_with_keys(served, call, name, table_answer(served, made), made.metadata)


def unregister_table(served: Served, call: Call) -> Answer:
    """Forget a table and say what it was; one of which that cannot be said stays, and can be dropped."""
    name = call.table
    for _ in range(_TRIES):
        pointer = served.catalog.pointer(name)
        body = _load(served, pointer, "all").body
        try:
            served.catalog.drop_table(name, pointer)
        except ConflictError:  # a commit came first
            continue
        return Answer(200, body)
    raise ConflictError(f"table `{name}` moved on each of {_TRIES} times that it was to be unregistered")


def rename_table(served: Served, call: Call) -> Answer:
    """Give a table another name."""
    asked: RenameRequest = call.read()
    source = parse_table_name(asked.source)
    try:
        served.catalog.rename_table(source, new_name(asked.destination.namespace, asked.destination.name))
    except AlreadyExistsError as error:
        raise renamed_onto(source, error) from error
    return NO_CONTENT


def report_metrics(served: Served, call: Call) -> Answer:
    """What a client measured is counted by its kind, and not kept."""
    report: MetricsRequest = call.read()
    served.catalog.pointer(call.table)
    served.metrics.count_report(report.report_type)
    return NO_CONTENT


def names_answer(served: Served, pointers: SqlPointers | None, call: Call) -> Answer:
    """Names of tables or of views in a namespace: a page of them, or all; none where the catalog has no such thing."""
    namespace, wanted = call.namespace, wanted_page(call.query, 1)
    check_namespace(served.store, namespace)
    if pointers is None:
        return answer_json(IdentifiersAnswer((), None))
    if wanted is None:
        return answer_json(IdentifiersAnswer(tuple(pointers.list_names(namespace)), None))
    found = pointers.names_after(namespace, wanted.after[0] if wanted.after else None, wanted.size + 1)
    shown = tuple(found[: wanted.size])
    return answer_json(IdentifiersAnswer(shown, page_token(shown[-1].name) if len(found) > wanted.size else None))


def table_answer(served: Served, table: LoadedTable) -> Answer:
    """A table as it is after a change."""
    location = table.metadata_location
    kept = served.loads.table(location, "all", lambda: table.metadata)
    return Answer(200, kept.body, {"etag": entity_tag(location)})


def _check_moved(served: Served, name: TableName, pointer: str) -> None:
    """Of a file that is gone: raise, unless the table has another by now."""
    if served.catalog.pointer(name) == pointer:
        raise NotFoundError(f"table `{name}` points to {pointer}, which does not exist", kind="file", name=pointer)


def _load(served: Served, location: str, mode: str) -> KeptAnswer:
    return served.loads.table(location, mode, lambda: served.catalog.metadata_at(location))
