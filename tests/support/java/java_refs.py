"""Java's ManageSnapshots and staged commits, on tables that bergline made."""

from collections.abc import Sequence
from typing import Any

from bergline import Table
from bergline.format.manifest.manifest import DataFile
from support.java.java_manifests import JAVA, file_json
from support.servers.peers import OfficialRuntime

_MANAGE = (
    JAVA
    + """
from py4j.protocol import Py4JError

table = iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)
try:
    getattr(table.manageSnapshots(), method)(*arguments).commit()
except Exception as error:
    if type(error) is Py4JError:  # the call never came to Java
        raise
    result = str(error)
"""
)
_STAGE = (
    JAVA
    + """
table = iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)
update = table.newAppend() if kind == "append" else table.newReplacePartitions()
add = update.appendFile if kind == "append" else update.addFile
for file in files:
    add(iceberg.ContentFileParser.fromJson(mapper.readTree(json.dumps(file)), table.specs()))
update.set("wap.id", wap_id).stageOnly().commit()
"""
)
_CALL = """
try:
    frame = spark.sql(text)
    result = {
        "columns": [[f.name, f.dataType.simpleString(), f.nullable] for f in frame.schema],
        "rows": [list(row) for row in frame.collect()],
    }
except Exception as error:
    result = {"error": str(error)}
"""


def java_manage(runtime: OfficialRuntime, table: Table, method: str, *arguments: Any) -> str | None:
    """One call of ManageSnapshots, committed. What Java raised, if it did."""
    found: str | None = runtime.python(_MANAGE, name=str(table.name), method=method, arguments=list(arguments))
    return found


def java_stage(runtime: OfficialRuntime, table: Table, kind: str, files: Sequence[DataFile], wap_id: str) -> None:
    """Stage an `append`, or `replace partitions`, under a WAP id."""
    written = [file_json(f, table.metadata.specs_by_id[f.spec_id].partition_type(table.schema)) for f in files]
    runtime.python(_STAGE, name=str(table.name), kind=kind, files=written, wap_id=wap_id)


def java_call(runtime: OfficialRuntime, text: str) -> dict[str, Any]:
    """A procedure's columns (name, type, whether null) and rows, or its error."""
    found: dict[str, Any] = runtime.python(_CALL, text=text)
    return found
