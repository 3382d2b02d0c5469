"""Whether a change may be the step from one version of a table to the next."""

from collections.abc import Hashable, Iterator, Sequence

from bergline.errors import BerglineError
from bergline.format.metadata.apply import apply_updates
from bergline.format.metadata.requirements import Requirement, check_requirements
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.metadata.updates import Update


def may_be_step(
    before: TableMetadata, after: TableMetadata, requirements: tuple[Requirement, ...], updates: Sequence[Update]
) -> bool:
    """Whether the requirements hold before the step, and everything that the updates change is so after it.

    Other differences do not matter: a server may add changes of its own.
    """
    try:
        check_requirements(before, requirements, before.location)
        expected = apply_updates(before, updates, base_location=None, now_ms=before.last_updated_ms)
    except BerglineError:
        return False
    old, wanted, found = (dict(_facts(m)) for m in (before, expected, after))
    return all(found.get(k) == wanted.get(k) for k in old.keys() | wanted.keys() if old.get(k) != wanted.get(k))


def _facts(metadata: TableMetadata) -> Iterator[tuple[Hashable, object]]:
    """Everything about a table except logs and counters; layouts by content, because servers assign their ids."""
    schemas = {s.schema_id: (s.fields, s.identifier_field_ids) for s in metadata.schemas}
    specs = {s.spec_id: s.fields for s in metadata.partition_specs}
    orders = {o.order_id: o.fields for o in metadata.sort_orders}
    yield from ((("schema", content), True) for content in schemas.values())
    yield from ((("spec", content), True) for content in specs.values())
    yield from ((("order", content), True) for content in orders.values())
    yield "current schema", schemas.get(metadata.current_schema_id)
    yield "default spec", specs.get(metadata.default_spec_id)
    yield "default order", orders.get(metadata.default_sort_order_id)
    yield from ((("property", name), text) for name, text in metadata.properties.items())
    yield from ((("ref", name), ref) for name, ref in metadata.refs.items())
    yield from ((("snapshot", snapshot.snapshot_id), True) for snapshot in metadata.snapshots)
    yield from ((("statistics", file.snapshot_id), file) for file in metadata.statistics)
    yield from ((("partition statistics", file.snapshot_id), file) for file in metadata.partition_statistics)
    yield from ((("key", key.key_id), key) for key in metadata.encryption_keys)
    yield "location", metadata.location
    yield "format version", metadata.format_version
    yield "uuid", metadata.table_uuid
