"""A table: the graph of its refs, what it holds and where it is."""

from collections.abc import Iterable

import msgspec

from bergline.catalog.at_ref.lake_ref import LAKE_MAIN, LakeRef
from bergline.catalog.protection.ref_protection import all_rules, protecting_rules
from bergline.console.page import Page, PageQuery, Source
from bergline.console.pages.values import (
    asked_number,
    broken_page,
    found_table,
    pages_around,
    plain,
    table_values,
)
from bergline.format.metadata.refs import MAIN
from bergline.reports.table_overview import RefLine, TableOverview, table_overview
from bergline.table.table import Table

_SNAPSHOTS = 100
_MOST_SNAPSHOTS, _MOST = 5000, 10**8


def table_page(source: Source, query: PageQuery) -> Page:
    """The history of a table, `count` snapshots from `offset` on."""
    found = found_table(source, query)
    if found.table is None:
        return broken_page(found)
    overview = table_overview(found.table)
    offset = asked_number(query, "offset", 0, _MOST)
    count = asked_number(query, "count", _SNAPSHOTS, _MOST_SNAPSHOTS) or _SNAPSHOTS
    values = {
        **table_values(source, found.table, overview.problems),
        "facts": _facts(overview),
        "totals": plain(overview.totals),
        "refs": [_ref(line) for line in _with_rules_of(source.at, found.table, overview.refs)],
        "history": plain(overview.history.part(offset, count)),
        "snapshots": len(overview.history.entries),
        **pages_around(offset, count, len(overview.history.entries)),
        "most_at_once": _MOST_SNAPSHOTS,
    }
    return Page(str(found.name), "table.html", values)


def _facts(overview: TableOverview) -> dict[str, object]:
    metadata = overview.metadata
    return {
        "uuid": metadata.table_uuid,
        "format_version": metadata.format_version,
        "location": metadata.location,
        "metadata_location": overview.metadata_location,
        "last_updated_ms": metadata.last_updated_ms,
        "columns": len(metadata.schema.fields),
        "partitioned_by": list(overview.partitioned_by),
        "sorted_by": list(overview.sorted_by),
        "comment": metadata.properties.get("comment"),
    }


def _with_rules_of(at: LakeRef | None, table: Table, lines: tuple[RefLine, ...]) -> Iterable[RefLine]:
    """At a ref of the lake, what is called `main` has the rules of that ref, and the real one has its own."""
    if at is None:
        return lines
    rules, real = all_rules(table.properties, table.refs.scope_rules()), {MAIN: at.name, LAKE_MAIN: MAIN}
    return (
        msgspec.structs.replace(
            line, rules=protecting_rules(rules, real.get(line.name, line.name), is_branch=line.ref.is_branch)
        )
        for line in lines
    )


def _ref(line: RefLine) -> dict[str, object]:
    return {
        "name": line.name,
        "kind": str(line.ref.snapshot_ref_type),
        "snapshot_id": str(line.ref.snapshot_id),
        "timestamp_ms": line.timestamp_ms,
        "rows": line.totals.rows,
        "bytes": line.totals.bytes,
        "ahead": line.ahead,
        "behind": line.behind,
        "rules": [
            {"pattern": r.rule.pattern, "of": str(r.scope.kind), "called": r.called, "rule": r.text} for r in line.rules
        ],
        "retention": {
            key: value
            for key, value in msgspec.structs.asdict(line.ref).items()
            if key in {"min_snapshots_to_keep", "max_snapshot_age_ms", "max_ref_age_ms"} and value is not None
        },
    }
