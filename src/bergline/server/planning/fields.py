"""Names of columns in requests: whole names, in the case of the schema or in any."""

from collections.abc import Sequence

import msgspec

from bergline.errors import InvalidInputError, NotFoundError
from bergline.format.schema.reserved import is_metadata_column
from bergline.format.schema.schema import Schema


class FieldNames(msgspec.Struct, frozen=True):
    """The columns of a schema, by the names that requests use."""

    schema: Schema
    case_sensitive: bool = True

    def find(self, name: str) -> str:
        """The column's name as the schema spells it; NotFoundError if there is none."""
        field = self.schema.find(name)
        spelt = self.schema.names_by_id[field.id]
        if self.case_sensitive and name not in self.schema.names and name not in self.schema.short_names:
            raise NotFoundError(
                f"no column `{name}` in this case", kind="column", name=name, hints=[f"there is `{spelt}`"]
            )
        return spelt

    def ids(self, names: Sequence[str], place: str) -> frozenset[int]:
        """The ids of the table's own columns among the names; metadata columns are skipped."""
        found = set()
        for number, name in enumerate(names):
            try:
                found.add(self.schema.names[self.find(name)].id)
            except NotFoundError as error:
                if not is_metadata_column(name):
                    raise InvalidInputError(f"{error} at {place}[{number}]", hints=error.hints) from error
        return frozenset(found)
