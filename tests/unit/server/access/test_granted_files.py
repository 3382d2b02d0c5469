"""What callers may do with files, by grants."""

from pathlib import Path

import pytest

from bergline.catalog.identifiers import TableName
from bergline.governance.grants.file_actions import FileActions
from bergline.server.access.granted_files import GrantedFiles
from bergline.server.opening import open_server
from support.servers.granted_server import GrantedServer

ORDERS = TableName(("db",), "orders")


@pytest.mark.parametrize(
    ("privileges", "on", "ref", "actions"),
    [
        ("read", "table db.orders", None, FileActions.READ),
        ("read,drop", "table db.orders", None, FileActions.READ),
        ("publish,manage-refs,read", "table db.orders", None, FileActions.READ),
        ("write", "table db.orders", "load/*", FileActions.WRITE),
        ("write", "namespace db", None, FileActions.WRITE),
        ("write,drop", "namespace db", None, FileActions.DELETE),
        ("administer", "namespace db", None, FileActions.DELETE),
        ("administer", "catalog", None, FileActions.EVERYTHING),
    ],
)
def test_files_are_added_by_writers_and_deleted_by_who_may_drop(
    tmp_path: Path, privileges: str, on: str, ref: str | None, actions: FileActions
) -> None:
    context = open_server(f"sqlite:///{tmp_path}/lake/catalog.db")
    files = GrantedFiles(context.access)
    assert files.actions("ann", frozenset(), ORDERS) is FileActions.EVERYTHING  # no grants yet
    granted = GrantedServer(context, "ann")
    granted.grant(privileges, on, "ann", ref)
    context.access.refresh()
    assert files.actions("ann", frozenset(), ORDERS) is actions
    assert files.actions("bob", frozenset(), ORDERS) is FileActions.READ
    granted.client.application.close()


def test_who_may_write_since_a_moment_ago_may_at_once(granted: GrantedServer) -> None:
    files, ann = granted.context.credentials.file_access, ("ann", frozenset[str](), ORDERS)
    granted.grant("read", "table db.orders", "ann")
    assert files.actions(*ann) is FileActions.READ
    assert granted.context.access.is_fresh
    granted.grant("write,drop", "table db.orders", "ann")  # by another server: what this one knows is fresh, and older
    assert files.actions_certainly(*ann) is None  # which the event loop takes for a reason to ask
    assert files.actions(*ann) is FileActions.DELETE
    assert files.actions_certainly(*ann) is FileActions.DELETE


def test_administrators_may_do_everything_at_once(granted: GrantedServer) -> None:
    files, root = granted.context.credentials.file_access, ("root", frozenset[str](), ORDERS)
    assert files.actions(*root) is FileActions.EVERYTHING
    assert files.actions_certainly(*root) is FileActions.EVERYTHING
