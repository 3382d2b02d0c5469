"""All tables of a lake, one after the other, while others create and drop some."""

from collections.abc import Iterator

from bergline.catalog.catalog import Catalog, LoadedTable
from bergline.catalog.identifiers import Namespace, TableName
from bergline.errors import NotFoundError


def every_table(catalog: Catalog, namespace: Namespace = ()) -> Iterator[TableName]:
    """The tables in a namespace and in those below it, or in all, those of branches of the lake included."""
    if namespace:
        yield from (*catalog.list_tables(namespace), *catalog.list_branch_tables(namespace))
    for below in catalog.list_namespaces(namespace):
        try:
            yield from (*catalog.list_tables(below), *catalog.list_branch_tables(below))
        except NotFoundError:  # dropped since it was listed
            continue


def load_listed(catalog: Catalog, name: TableName) -> LoadedTable | None:
    """A table; None if it was dropped since it was listed, NotFoundError if only its metadata file is missing."""
    missing = ""
    while True:
        try:
            return catalog.load_table(name)
        except NotFoundError as error:
            if error.kind != "file":
                return None
            if error.name == missing:
                raise
            missing = error.name  # it may be being purged right now: look once more
