"""Row deltas and rewrites through Java's own API, on files that bergline wrote."""

from collections.abc import Iterable
from typing import Any

from bergline import Table
from bergline.format.manifest.manifest import DataFile, FileContent
from bergline.scan.manifests import live_entries, load_manifest_list
from bergline.table.operations.rewrite_files import Rewritten
from bergline.table.operations.row_delta import RowDeltaChecks
from support.java.java_manifests import JAVA, file_json
from support.servers.peers import OfficialRuntime

_CODE = (
    JAVA
    + """
def commit(table, kind, files, since, options):
    def parsed(name):
        nodes = [mapper.readTree(json.dumps(f)) for f in files[name]]
        return [iceberg.ContentFileParser.fromJson(n, table.specs()) for n in nodes]

    update = table.newRowDelta() if kind == "row delta" else table.newRewrite()
    if since is not None:
        update.validateFromSnapshot(since)
    if kind == "row delta":
        for method, name in ((update.addRows, "add"), (update.addDeletes, "deletes"),
                             (update.removeRows, "remove"), (update.removeDeletes, "remove deletes")):
            for file in parsed(name):
                method(file)
        if options["filter"] is not None:
            update.conflictDetectionFilter(iceberg.expressions.ExpressionParser.fromJson(json.dumps(options["filter"])))
        if options["referenced"]:
            update.validateDataFilesExist(options["referenced"])
        if options["deleted files"]:
            update.validateDeletedFiles()
        if options["new data"]:
            update.validateNoConflictingDataFiles()
        if options["new deletes"]:
            update.validateNoConflictingDeleteFiles()
    else:
        if options["number"] is not None:
            update.dataSequenceNumber(options["number"])
        for name in ("remove", "remove deletes"):
            for file in parsed(name):
                update.deleteFile(file)
        for name in ("add", "deletes"):
            for file in parsed(name):
                update.addFile(file)
    update.commit()

from py4j.protocol import Py4JJavaError
try:
    commit(iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name), kind, files, since, options)
except Py4JJavaError as error:
    result = error.java_exception.getClass().getSimpleName() + ": " + str(error.java_exception.getMessage())
"""
)


def java_row_delta(
    runtime: OfficialRuntime,
    table: Table,
    added: Iterable[DataFile],
    removed: Iterable[DataFile],
    since: int | None,
    checks: RowDeltaChecks,
    row_filter: dict[str, Any] | None,
) -> str | None:
    """Commit a row delta; `row_filter` is the checks' filter as Java's JSON. What Java raised, if it did."""
    options = {
        "filter": row_filter,
        "referenced": sorted(checks.referenced),
        "deleted files": checks.deleted_files,
        "new data": checks.new_data,
        "new deletes": checks.new_deletes,
    }
    return _commit(runtime, table, "row delta", added, removed, since, options)


def java_rewrite(runtime: OfficialRuntime, table: Table, rewritten: Rewritten, since: int | None) -> str | None:
    """Commit a rewrite of files. What Java raised, if it did."""
    removed = (*rewritten.removed, *rewritten.dangling)
    options = {"number": rewritten.sequence_number}
    return _commit(runtime, table, "rewrite", rewritten.added, removed, since, options)


def live_files(table: Table) -> dict[tuple[str, int | None], tuple[Any, ...]]:
    """The numbers of the live files of `main`, by path and place."""
    assert table.current_snapshot is not None
    manifests = load_manifest_list(table.io, table.current_snapshot)
    return {
        (e.data_file.file_path, e.data_file.content_offset): (
            e.sequence_number,
            e.file_sequence_number,
            e.data_file.content,
            e.data_file.partition,
            e.data_file.first_row_id,
        )
        for e in live_entries(table.io, manifests, table.metadata)
    }


def _commit(
    runtime: OfficialRuntime,
    table: Table,
    kind: str,
    added: Iterable[DataFile],
    removed: Iterable[DataFile],
    since: int | None,
    options: dict[str, Any],
) -> str | None:
    def written(files: Iterable[DataFile], *, data: bool) -> list[dict[str, Any]]:
        return [
            file_json(f, table.metadata.specs_by_id[f.spec_id].partition_type(table.schema))
            for f in files
            if (f.content is FileContent.DATA) == data
        ]

    files = {
        "add": written(added, data=True),
        "deletes": written(added, data=False),
        "remove": written(removed, data=True),
        "remove deletes": written(removed, data=False),
    }
    found: str | None = runtime.python(
        _CODE, name=str(table.name), kind=kind, files=files, since=since, options=options
    )
    return found
