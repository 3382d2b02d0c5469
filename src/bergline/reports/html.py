"""Tables, refs, scans and differences as HTML for notebooks, with the graph; every value is escaped."""

from bergline.arguments import counted
from bergline.errors import BerglineError
from bergline.format.metadata.snapshot_log import readable_ms
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.markup import escaped, html_block, html_table
from bergline.reports.graph import render_graph
from bergline.reports.history import table_history
from bergline.reports.row_sample import sample_rows
from bergline.reports.schemas import columns_of
from bergline.reports.table_overview import partition_terms, ref_lines
from bergline.reports.totals import totals_of
from bergline.reports.units import render_size
from bergline.table.references.diff import RefDiff
from bergline.table.scans.scan import TableScan
from bergline.table.table import Table

_MOST_SNAPSHOTS, _MOST_ROWS = 50, 20


def table_html(table: Table) -> str:
    """A table: what it holds, its graph and its columns."""
    metadata = table.metadata
    totals, terms = totals_of(metadata.current_snapshot), partition_terms(metadata)
    facts = [
        None if totals.rows is None else counted(totals.rows, "row"),
        None if totals.bytes is None else render_size(totals.bytes),
        counted(len(metadata.snapshots), "snapshot"),
        f"format version {metadata.format_version}",
        f"partitioned by {', '.join(terms)}" if terms else None,
    ]
    columns = [(c.name, c.type, "required" if c.required else None, c.doc) for c in columns_of(metadata.schema)]
    return html_block(
        f"Table {table.name}",
        " · ".join(fact for fact in facts if fact),
        _graph(metadata),
        html_table(("column", "type", "", "comment"), columns),
    )


def refs_html(metadata: TableMetadata) -> str:
    """The branches and tags of a table, with its graph."""
    lines = [
        (
            line.name,
            line.ref.snapshot_ref_type,
            line.ref.snapshot_id,
            readable_ms(line.timestamp_ms),
            None if line.totals.rows is None else f"{line.totals.rows:,}",
            None if line.ahead is None else f"{line.ahead} ahead, {line.behind} behind",
        )
        for line in ref_lines(metadata)
    ]
    header = ("ref", "type", "snapshot", "made", "rows", "against main")
    return html_block("Branches and tags", counted(len(lines), "ref"), html_table(header, lines), _graph(metadata))


def scan_html(scan: TableScan) -> str:
    """A scan: what is read, and its first rows."""
    title = "Scan of an empty table" if scan.snapshot_id is None else f"Scan of snapshot {scan.snapshot_id}"
    try:
        plan = scan.plan()
        sample = sample_rows(scan.to_batches(), [f.name for f in scan.schema.fields], _MOST_ROWS)
    except BerglineError as error:
        return html_block(title, str(error))
    rows = [["null" if value is None else value for value in row] for row in sample.rows]
    facts = [f"where {scan.row_filter}", counted(len(plan.files), "data file")]
    if not sample.is_complete:
        facts.append(f"the first {len(rows)} rows")
    return html_block(title, " · ".join(facts), html_table(sample.columns, rows))


def diff_html(diff: RefDiff) -> str:
    """How two refs differ, from metadata alone."""
    facts = [
        "no common ancestor" if diff.ancestor is None else f"common ancestor {diff.ancestor.snapshot_id}",
        f"{counted(len(diff.only_to), 'snapshot')} only in {diff.to_ref}",
        f"{counted(len(diff.only_from), 'snapshot')} only in {diff.from_ref}",
    ]
    lines = [
        (p.partition or "all rows", *(f"{n:,}" for n in (p.added_rows, p.removed_rows, p.added_deletes)))
        for p in diff.partitions
    ]
    header = ("partition", "rows in added files", "rows in removed files", "deletes added")
    return html_block(
        f"{diff.to_ref} against {diff.from_ref}",
        " · ".join(facts),
        html_table(header, lines) if lines else "",
        html_table(("columns",), [(change,) for change in diff.schema_changes]) if diff.schema_changes else "",
    )


def _graph(metadata: TableMetadata) -> str:
    """The graph of the newest snapshots."""
    history = table_history(metadata)
    older = len(history.entries) - _MOST_SNAPSHOTS
    rest = f"<div>and {escaped(counted(older, 'older snapshot'))}</div>" if older > 0 else ""
    return render_graph(history.part(0, _MOST_SNAPSHOTS)) + rest
