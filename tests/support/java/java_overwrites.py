"""Appends, overwrites, deletes and replaced partitions through Java's own API, on files that bergline wrote."""

from collections.abc import Mapping, Sequence
from typing import Any

from bergline import Table
from bergline.format.manifest.manifest import DataFile
from support.java.java_manifests import JAVA, file_json
from support.servers.peers import OfficialRuntime

_CODE = (
    JAVA
    + """
from py4j.protocol import Py4JJavaError

def expression(tree):
    return iceberg.expressions.ExpressionParser.fromJson(json.dumps(tree))

def commit(table):
    def parsed(files):
        return [iceberg.ContentFileParser.fromJson(mapper.readTree(json.dumps(f)), table.specs()) for f in files]

    starts = {
        "append": table.newAppend, "fast append": table.newFastAppend, "overwrite": table.newOverwrite,
        "replace partitions": table.newReplacePartitions, "delete": table.newDelete,
    }
    update = starts[kind]()
    add = update.appendFile if "append" in kind else getattr(update, "addFile", None)
    for file in parsed(added):
        add(file)
    for file in parsed(removed):
        update.deleteFile(file)
    if row_filter is not None:
        by_filter = update.deleteFromRowFilter if kind == "delete" else update.overwriteByRowFilter
        by_filter(expression(row_filter))
    if checks is not None:
        if checks["since"] is not None:
            update.validateFromSnapshot(checks["since"])
        if checks["filter"] is not None:
            update.conflictDetectionFilter(expression(checks["filter"]))
        if checks["data"]:
            update.validateNoConflictingData()
        if checks["deletes"]:
            update.validateNoConflictingDeletes()
    update.commit()

try:
    commit(iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name))
except Py4JJavaError as error:
    result = error.java_exception.getClass().getSimpleName() + ": " + str(error.java_exception.getMessage())
"""
)


def java_change(
    runtime: OfficialRuntime,
    table: Table,
    kind: str,
    *,
    added: Sequence[DataFile] = (),
    removed: Sequence[DataFile] = (),
    row_filter: Mapping[str, Any] | None = None,
    checks: Mapping[str, Any] | None = None,
) -> str | None:
    """Commit an operation; filters are Java's JSON. What Java raised, if it did."""

    def written(files: Sequence[DataFile]) -> list[dict[str, Any]]:
        return [
            file_json(f, table.metadata.specs_by_id[f.spec_id].partition_type(table.metadata.schema)) for f in files
        ]

    said: str | None = runtime.python(
        _CODE,
        name=str(table.name),
        kind=kind,
        added=written(added),
        removed=written(removed),
        row_filter=row_filter,
        checks=checks,
    )
    return said
