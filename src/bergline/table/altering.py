"""What a user changes about a table without writing rows: every method is one commit."""

from collections.abc import Iterable, Mapping
from typing import Self

from bergline.format.arguments import check_list, check_texts
from bergline.format.updates import RemoveProperties, SetProperties
from bergline.table.handle import TableHandle
from bergline.table.known_properties import check_properties
from bergline.table.operation import Change, MetadataOperation


class TableAltering(TableHandle):
    """Properties and layout."""

    def set_properties(self, updates: Mapping[str, str] | None = None, *, remove: Iterable[str] = ()) -> Self:
        """Set and remove table properties."""
        set_ = check_texts({} if updates is None else updates, "property")
        removed = check_list(remove, "property name")
        check_properties(set_, self.schema, remove=removed, base=self.metadata.properties)
        changes = (SetProperties(set_),) if set_ else ()
        removals = (RemoveProperties(removed),) if removed else ()
        keys = (*set_, *removed)
        self.commit(
            MetadataOperation(
                lambda _: Change((*changes, *removals)), overwrites=lambda base: [base.properties.get(k) for k in keys]
            )
        )
        return self
