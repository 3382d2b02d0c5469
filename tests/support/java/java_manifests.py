"""Manifests and manifest lists through Java's own readers and writers; files and entries pass as Java's JSON."""

import math
from typing import Any

from bergline import Table
from bergline.format.manifest.manifest import DataFile, ManifestEntry, ManifestFile
from bergline.format.manifest.summary import summarize_partitions
from bergline.format.types.defaults import encode_default
from bergline.format.types.types import IcebergType, StructType
from bergline.scan.manifests import load_entries, load_manifest_list

JAVA = """
import json

iceberg = jvm.org.apache.iceberg
io = iceberg.hadoop.HadoopFileIO(spark._jsc.hadoopConfiguration())
mapper = iceberg.util.JsonUtil.mapper()
loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()

def hidden(cls, name, arity):
    # what Java keeps for its own package
    methods = jvm.java.lang.Class.forName("org.apache.iceberg." + cls, True, loader).getDeclaredMethods()
    (found,) = [m for m in methods if m.getName() == name and m.getParameterCount() == arity]
    found.setAccessible(True)
    return found

def call(method, target, *arguments):
    array = spark.sparkContext._gateway.new_array(jvm.java.lang.Object, len(arguments))
    for i, argument in enumerate(arguments):
        array[i] = argument
    return method.invoke(target, array)

MANIFEST_JSON, READ_LIST = hidden("ManifestFileParser", "toJson", 2), hidden("ManifestLists", "read", 1)
WRITE_LIST, ENTRIES = hidden("ManifestLists", "write", 7), hidden("ManifestReader", "entries", 0)

def parse_specs(schema, texts):
    parsed = iceberg.SchemaParser.fromJson(schema)
    specs = [iceberg.PartitionSpecParser.fromJson(parsed, text) for text in texts]
    return {spec.specId(): spec for spec in specs}

def manifest_json(manifest):
    writer = jvm.java.io.StringWriter()
    generator = iceberg.util.JsonUtil.factory().createGenerator(writer)
    call(MANIFEST_JSON, None, manifest, generator)
    generator.flush()
    return json.loads(writer.toString())

def read_list(path):
    return list(call(READ_LIST, None, io.newInputFile(path)))

def read_entries(manifest, specs):
    read = iceberg.ManifestFiles.readDeleteManifest if manifest.content().id() else iceberg.ManifestFiles.read
    reader = read(manifest, io, specs)
    spec = specs[manifest.partitionSpecId()]
    entries = call(ENTRIES, reader)
    iterator, found = entries.iterator(), []
    while iterator.hasNext():
        entry = iterator.next()
        found.append({
            "status": entry.status().id(),
            "snapshot-id": entry.snapshotId(),
            "sequence-number": entry.dataSequenceNumber(),
            "file-sequence-number": entry.fileSequenceNumber(),
            "file": json.loads(iceberg.ContentFileParser.toJson(entry.file(), spec)),
        })
    entries.close()
    reader.close()
    return found

def read_all(path, specs):
    return [{"manifest": manifest_json(m), "entries": read_entries(m, specs)} for m in read_list(path)]

def read_table(name):
    table = iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)
    return [read_all(snapshot.manifestListLocation(), table.specs()) for snapshot in table.snapshots()]

def write_manifest(version, path, entries, spec, snapshot_id, deletes):
    write = iceberg.ManifestFiles.writeDeleteManifest if deletes else iceberg.ManifestFiles.write
    writer = write(version, spec, io.newOutputFile(path), snapshot_id)
    for entry in entries:
        file = iceberg.ContentFileParser.fromJson(mapper.readTree(json.dumps(entry["file"])), spec)
        number, file_number = entry["sequence-number"], entry["file-sequence-number"]
        if version == 1 and entry["status"] != 1:
            number = file_number = 0
        if entry["status"] == 0:
            writer.existing(file, entry["snapshot-id"], number, file_number)
        elif entry["status"] == 2:
            writer.delete(file, number, file_number)
        elif number is None:
            writer.add(file)
        else:
            writer.add(file, number)
    writer.close()
    return writer.toManifestFile()

def write_list(version, path, manifests, snapshot_id, parent, number, first_row_id):
    plain = iceberg.encryption.PlaintextEncryptionManager.instance()
    writer = call(WRITE_LIST, None, version, io.newOutputFile(path), plain, snapshot_id, parent, number, first_row_id)
    for manifest in manifests:
        writer.add(manifest)
    writer.close()
    return writer.nextRowId()
"""
_MAPS = ("column-sizes", "value-counts", "null-value-counts", "nan-value-counts", "lower-bounds", "upper-bounds")
_OPTIONAL = ("sort-order-id", "first-row-id", "referenced-data-file", "content-offset", "content-size-in-bytes")
_COUNTS = tuple(f"{kind}-{what}-count" for kind in ("added", "existing", "deleted") for what in ("files", "rows"))
_MANIFEST = ("partition-spec-id", "sequence-number", "min-sequence-number", "added-snapshot-id", *_COUNTS)


def read_table(table: Table) -> list[list[dict[str, Any]]]:
    """The manifests and entries of every snapshot, as `read_table` of the Java code gives them."""
    return [
        [_manifest_and_entries(table, m) for m in load_manifest_list(table.io, s)] for s in table.metadata.snapshots
    ]


def _manifest_and_entries(table: Table, manifest: ManifestFile) -> dict[str, Any]:
    spec = table.metadata.specs_by_id[manifest.partition_spec_id]
    struct = spec.partition_type(table.metadata.schema_for(spec))
    entries = load_entries(table.io, manifest, table.metadata)
    assert summarize_partitions(entries, struct) == manifest.partitions
    return {"manifest": manifest_json(manifest), "entries": [entry_json(e, struct) for e in entries]}


def file_json(file: DataFile, partition: StructType) -> dict[str, Any]:
    """A file as Java's `ContentFileParser` writes it."""
    found = {
        "spec-id": file.spec_id,
        "content": file.content.name.lower().replace("_", "-"),
        "file-path": file.file_path,
        "file-format": file.file_format.lower(),
        "partition": [_value(f.type, v) for f, v in zip(partition.fields, file.partition, strict=True)],
        "file-size-in-bytes": file.file_size_in_bytes,
        "record-count": file.record_count,
        "key-metadata": _hex(file.key_metadata),
        "split-offsets": None if file.split_offsets is None else list(file.split_offsets),
        "equality-ids": None if file.equality_ids is None else list(file.equality_ids),
        **{name: _pairs(getattr(file, name.replace("-", "_"))) for name in _MAPS},
        **{name: getattr(file, name.replace("-", "_")) for name in _OPTIONAL},
    }
    return _present(found)


def entry_json(entry: ManifestEntry, partition: StructType) -> dict[str, Any]:
    """An entry as the Java code above gives it."""
    return {
        "status": int(entry.status),
        "snapshot-id": entry.snapshot_id,
        "sequence-number": entry.sequence_number,
        "file-sequence-number": entry.file_sequence_number,
        "file": file_json(entry.data_file, partition),
    }


def manifest_json(manifest: ManifestFile) -> dict[str, Any]:
    """A manifest as Java's `ManifestFileParser` writes it."""
    summaries = manifest.partitions and [
        _present(
            {
                "contains-null": s.contains_null,
                "contains-nan": s.contains_nan,
                "lower-bound": _hex(s.lower_bound),
                "upper-bound": _hex(s.upper_bound),
            }
        )
        for s in manifest.partitions
    ]
    found = {
        "path": manifest.manifest_path,
        "length": manifest.manifest_length,
        "content": int(manifest.content),
        "partition-field-summary": None if summaries is None else list(summaries),
        "key-metadata": _hex(manifest.key_metadata),
        "first-row-id": manifest.first_row_id,
        **{name: getattr(manifest, name.replace("-", "_")) for name in _MANIFEST},
    }
    return _present(found)


def _value(type_: IcebergType, value: Any) -> Any:
    """A partition value in Java's JSON, which has floats that JSON has not as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    wire = encode_default(type_, value)
    return wire.upper() if isinstance(value, bytes) else wire


def _pairs(pairs: dict[int, Any] | None) -> dict[str, list[Any]] | None:
    if pairs is None:
        return None
    return {"keys": list(pairs), "values": [_hex(v) if isinstance(v, bytes) else v for v in pairs.values()]}


def _hex(value: bytes | None) -> str | None:
    return None if value is None else value.hex().upper()


def _present(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
