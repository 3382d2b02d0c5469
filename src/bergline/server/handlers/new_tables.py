"""A new table as a request describes it: ids of its own for columns, partition fields and the sort order."""

import msgspec

from bergline.arguments import check_texts
from bergline.catalog.identifiers import Namespace, TableName, check_lengths, parse_table_name
from bergline.catalog.rest.protocol.bodies import CreateTableRequest
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.partition.compatibility import (
    check_free_names,
    check_order_fits,
    check_partition_names,
    check_spec_fits,
)
from bergline.format.partition.sort_order import FIRST_SORT_ORDER_ID, UNSORTED, SortOrder
from bergline.format.partition.spec import FIRST_PARTITION_FIELD_ID, PartitionSpec
from bergline.server.handlers.context import ServerContext
from bergline.table.evolution.definition import TableDefinition


def new_name(namespace: Namespace, name: str) -> TableName:
    """The name of a table or view that is to be, if the catalog's database can hold it."""
    parsed = parse_table_name(TableName(namespace, name))
    check_lengths(".".join(parsed.namespace), parsed.name)
    return parsed


def new_table(context: ServerContext, name: TableName, asked: CreateTableRequest, now_ms: int) -> TableMetadata:
    """The metadata of the table; nothing is written yet."""
    check_free_names(asked.schema)
    spec, order = _spec(asked), _order(asked)
    check_spec_fits(spec, asked.schema)
    check_partition_names(spec, asked.schema)
    check_order_fits(order, asked.schema)
    properties = check_texts(asked.properties or {}, "property")
    context.check_properties(properties)
    definition = TableDefinition(asked.schema, spec, properties, asked.location, order)
    return definition.new_table(context.new_location(name, asked.location), now_ms)


def _spec(asked: CreateTableRequest) -> PartitionSpec:
    """The partition fields, numbered anew as Java does."""
    given = asked.partition_spec.fields if asked.partition_spec else ()
    fields = (msgspec.structs.replace(f, field_id=FIRST_PARTITION_FIELD_ID + n) for n, f in enumerate(given))
    return PartitionSpec(0, tuple(fields))


def _order(asked: CreateTableRequest) -> SortOrder:
    fields = asked.write_order.fields if asked.write_order else ()
    return SortOrder(FIRST_SORT_ORDER_ID, fields) if fields else UNSORTED
