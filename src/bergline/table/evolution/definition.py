"""The definition of a new table, checked: its columns, partitions, properties and location."""

from collections.abc import Mapping, Sequence
from uuid import uuid4

import msgspec
import pyarrow as pa

from bergline.arguments import check_list, check_text, check_texts
from bergline.catalog.catalog import Catalog
from bergline.catalog.identifiers import TableName
from bergline.format.evolution.replacement import replacement_updates
from bergline.format.metadata.new_table import new_metadata
from bergline.format.metadata.properties import asked_format_version, stored_properties
from bergline.format.metadata.requirements import AssertLastAssignedFieldId, AssertLastAssignedPartitionId
from bergline.format.metadata.table_metadata import DEFAULT_FORMAT_VERSION, TableMetadata
from bergline.format.partition.compatibility import check_free_names
from bergline.format.partition.sort_order import UNSORTED, SortOrder
from bergline.format.partition.spec import PartitionSpec, parse_partition_by
from bergline.format.schema.schema import Schema
from bergline.io.locations import absolute_location
from bergline.table.commits.operation import Change
from bergline.table.evolution.column_arguments import column_schema
from bergline.table.evolution.properties import check_properties

_NEW_TABLE_PROPERTIES = {"write.parquet.compression-codec": "zstd"}


class TableDefinition(msgspec.Struct, frozen=True):
    """The definition of a table to create."""

    schema: Schema
    spec: PartitionSpec
    properties: dict[str, str]
    location: str | None
    """The requested location; None leaves it to the catalog, or keeps an existing one."""
    order: SortOrder = UNSORTED

    def new_table(self, location: str, now_ms: int) -> TableMetadata:
        """The metadata of a new, empty table: v2, unless the property `format-version` says 1 or 3."""
        return new_metadata(
            schema=self.schema,
            spec=self.spec,
            location=location,
            properties=_NEW_TABLE_PROPERTIES | stored_properties(self.properties),
            table_uuid=str(uuid4()),
            now_ms=now_ms,
            format_version=asked_format_version(self.properties, DEFAULT_FORMAT_VERSION),
            order=self.order,
        )

    def replacement(self, base: TableMetadata, location: str) -> Change:
        """The change that replaces an existing table by this one."""
        updates = replacement_updates(
            base,
            schema=self.schema,
            spec=self.spec,
            location=location,
            properties=_NEW_TABLE_PROPERTIES | self.properties,
        )
        return Change(
            updates,
            (AssertLastAssignedFieldId(base.last_column_id), AssertLastAssignedPartitionId(base.last_partition_id)),
        )


def define_table(
    schema: pa.Schema | Schema,
    *,
    partition_by: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    location: str | None = None,
) -> TableDefinition:
    """The definition; InvalidInputError if no table can be like that."""
    iceberg = column_schema(schema)
    if location is not None:
        check_text(location, "text for the location")
    terms = check_list(partition_by, "partition term")
    check_free_names(iceberg)
    given = check_texts({} if properties is None else properties, "property")
    check_properties(given, iceberg)
    return TableDefinition(iceberg, parse_partition_by(terms, iceberg), given, location)


def new_location(catalog: Catalog, name: TableName, request: str | None) -> str:
    """The requested location, if no other table is there, or the catalog's default."""
    if not request:
        return catalog.default_location(name)
    location = absolute_location(check_text(request, "text for the location"))
    catalog.check_location(name, location)
    return location
