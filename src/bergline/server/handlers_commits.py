"""Changes to tables."""

from bergline.catalog.identifiers import TableName, parse_table_name
from bergline.catalog.rest.asked_commits import AskedChange, check_number, commit_asked
from bergline.catalog.rest.bodies import CommitTableRequest, CommitTransactionRequest
from bergline.errors import InvalidInputError
from bergline.format.updates import SetLocation, SetProperties
from bergline.format.updates_json import WireUpdate, plain_updates
from bergline.server.answer import NO_CONTENT, Answer
from bergline.server.call import Call
from bergline.server.handlers_tables import table_answer
from bergline.server.served import Served


def commit_table(served: Served, call: Call) -> Answer:
    """Change one table, or make one that was staged."""
    asked: CommitTableRequest[WireUpdate] = call.read()
    name = call.table
    if asked.identifier is not None and asked.identifier != name:
        raise InvalidInputError(f"expected `{name}` as in the path, found `{asked.identifier}` in the body")
    change = _change(served, name, asked)
    with served.locks.held([name]):
        (table,) = commit_asked(served.catalog, (change,))
    return table_answer(served, table)


def commit_transaction(served: Served, call: Call) -> Answer:
    """Change several tables, all or none."""
    asked: CommitTransactionRequest[WireUpdate] = call.read()
    changes = []
    for place, change in enumerate(asked.table_changes):
        if change.identifier is None:
            raise InvalidInputError(f"expected an identifier for each table, found none at $.table-changes[{place}]")
        changes.append(_change(served, parse_table_name(change.identifier), change))
    with served.locks.held([change.name for change in changes]):
        commit_asked(served.catalog, changes)
    return NO_CONTENT


def _change(served: Served, name: TableName, asked: CommitTableRequest[WireUpdate]) -> AskedChange:
    updates = plain_updates(asked.updates)
    check_number(updates)
    for update in updates:
        if isinstance(update, SetLocation):
            served.check_place(update.location)
        if isinstance(update, SetProperties):
            served.check_properties(update.updates)
    return AskedChange(name, asked.requirements, updates)
