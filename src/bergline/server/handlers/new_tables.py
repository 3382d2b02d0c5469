"""A new table, or a new name, from a request: fresh ids for columns, partition fields and the sort order."""

from collections.abc import Callable

import msgspec

from bergline.arguments import check_texts
from bergline.catalog.identifiers import Namespace, TableName, check_lengths, parse_table_name
from bergline.catalog.rest.protocol.bodies import CreateTableRequest, RenameRequest
from bergline.catalog.rest.protocol.messages import renamed_onto
from bergline.errors import AlreadyExistsError
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.partition.compatibility import (
    check_free_names,
    check_order_fits,
    check_partition_names,
    check_spec_fits,
)
from bergline.format.partition.sort_order import FIRST_SORT_ORDER_ID, UNSORTED, SortOrder
from bergline.format.partition.spec import FIRST_PARTITION_FIELD_ID, PartitionSpec
from bergline.server.context.context import ServerContext
from bergline.server.http.request import Request
from bergline.server.http.response import NO_CONTENT, Response
from bergline.table.evolution.definition import TableDefinition


def new_name(namespace: Namespace, name: str) -> TableName:
    """The name of a new table or view, checked against the limits of the catalog's database."""
    parsed = parse_table_name(TableName(namespace, name))
    check_lengths(".".join(parsed.namespace), parsed.name)
    return parsed


def rename(request: Request, move: Callable[[TableName, TableName], None]) -> Response:
    """Give a table or a view another name."""
    body: RenameRequest = request.read()
    source = parse_table_name(body.source)
    try:
        move(source, new_name(body.destination.namespace, body.destination.name))
    except AlreadyExistsError as error:
        raise renamed_onto(source, error) from error
    return NO_CONTENT


def new_table(context: ServerContext, name: TableName, body: CreateTableRequest, now_ms: int) -> TableMetadata:
    """The metadata of the table; nothing is written yet."""
    check_free_names(body.schema)
    spec, order = _spec(body), _order(body)
    check_spec_fits(spec, body.schema)
    check_partition_names(spec, body.schema)
    check_order_fits(order, body.schema)
    properties = check_texts(body.properties or {}, "property")
    context.locations.check_properties(properties)
    definition = TableDefinition(body.schema, spec, properties, body.location, order)
    return definition.new_table(context.claims.new_location(name, body.location), now_ms)


def _spec(body: CreateTableRequest) -> PartitionSpec:
    """The partition fields with fresh ids, as in Java."""
    given = body.partition_spec.fields if body.partition_spec else ()
    fields = (msgspec.structs.replace(f, field_id=FIRST_PARTITION_FIELD_ID + n) for n, f in enumerate(given))
    return PartitionSpec(0, tuple(fields))


def _order(body: CreateTableRequest) -> SortOrder:
    fields = body.write_order.fields if body.write_order else ()
    return SortOrder(FIRST_SORT_ORDER_ID, fields) if fields else UNSORTED
