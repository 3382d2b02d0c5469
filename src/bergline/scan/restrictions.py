"""Refuses to read the rows of a table whose catalog restricts readers, or anything that reveals their values."""

from bergline.errors import UnsupportedError
from bergline.format.metadata.table_metadata import TableMetadata


def check_rows_readable(metadata: TableMetadata) -> None:
    """UnsupportedError if the catalog demands row filters or column masks, which are not applied here."""
    restrictions = metadata.read_restrictions
    if restrictions is None:
        return
    raise UnsupportedError(
        f"cannot read table `{restrictions.table}`: its catalog demands {' and '.join(restrictions.demands)} of its "
        "readers (`read-restrictions`), which bergline does not apply yet",
        hints=[
            "read it with an engine that applies them",
            "ask the operator of the catalog for a table or view of what you may see",
        ],
    )
