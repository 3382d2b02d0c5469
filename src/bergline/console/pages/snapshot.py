"""One snapshot: who made it with what, what it changed, where it stands."""

import re

from bergline.arguments import shown
from bergline.console.links import name_text
from bergline.console.page import Page, PageQuery, Source, asked_table
from bergline.errors import InvalidInputError


def snapshot_page(source: Source, query: PageQuery) -> Page:
    """A snapshot by its id; NotFoundError if the table has none with it."""
    table = source.lake.load_table(asked_table(query))
    text = query.get("id", "")
    if not re.fullmatch(r"[0-9]{1,19}", text):
        raise InvalidInputError(f"expected the id of a snapshot, found {shown(text)}")
    base = table.metadata
    snapshot = base.snapshot(int(text))
    refs = [
        {"name": name, "kind": str(ref.snapshot_ref_type)}
        for name, ref in sorted(base.refs.items())
        if ref.snapshot_id == snapshot.snapshot_id
    ]
    on = [
        name
        for name, ref in sorted(base.refs.items())
        if ref.is_branch and base.is_ancestor(snapshot.snapshot_id, of=ref.snapshot_id)
    ]
    parent = snapshot.parent_snapshot_id
    children = [str(s.snapshot_id) for s in base.snapshots if s.parent_snapshot_id == snapshot.snapshot_id]
    return Page(
        f"Snapshot {snapshot.snapshot_id}",
        "snapshot.html",
        {
            "table": str(table.name),
            "key": name_text(table.name),
            "id": str(snapshot.snapshot_id),
            "parent": None if parent is None else str(parent),
            "parent_expired": parent is not None and parent not in base.snapshots_by_id,
            "children": children[:50],
            "timestamp_ms": snapshot.timestamp_ms,
            "sequence_number": snapshot.sequence_number,
            "schema_id": snapshot.schema_id,
            "manifest_list": snapshot.manifest_list,
            "operation": snapshot.summary.get("operation"),
            "summary": {key: snapshot.summary[key] for key in sorted(snapshot.summary)},
            "refs": refs,
            "branches": on,
            "may_roll_back": [name for name in on if base.refs[name].snapshot_id != snapshot.snapshot_id],
            "may_change": source.may_change,
        },
    )
