"""Namespaces in AWS Glue: databases, with `comment` and `location` in their own fields, as in Java."""

from collections.abc import Collection, Mapping
from typing import Any

from bergline.catalog.glue.names import check_new_namespace, database_of
from bergline.catalog.glue.requests import GlueCalls, GlueResponse
from bergline.catalog.glue.tables import is_left
from bergline.catalog.identifiers import Namespace

_FIELDS = {"comment": "Description", "location": "LocationUri"}
_KEPT = ("CreateTableDefaultPermissions", "FederatedDatabase", "TargetDatabase")


class GlueNamespaces:
    """The databases of a Glue catalog."""

    def __init__(self, calls: GlueCalls, *, any_name: bool) -> None:
        self._calls = calls
        self._any_name = any_name

    def create(self, namespace: Namespace, properties: Mapping[str, str]) -> bool:
        name = check_new_namespace(namespace, any_name=self._any_name)
        response = self._calls.change("create_database", DatabaseInput=_input(name, properties, {}))
        return self._calls.settled(response, f"database `{name}`") is GlueResponse.DONE

    def drop(self, namespace: Namespace) -> bool:
        """Delete a database that has no tables, Iceberg or not, apart from remains of dropped ones."""
        if (database := database_of(namespace)) is None:
            return False
        if not all(is_left(t) for t in self._calls.pages("get_tables", "TableList", DatabaseName=database)):
            return False
        response = self._calls.change("delete_database", Name=database)
        return self._calls.settled(response, f"database `{database}`") is GlueResponse.DONE

    def exists(self, namespace: Namespace) -> bool:
        return self.properties(namespace) is not None

    def properties(self, namespace: Namespace) -> dict[str, str] | None:
        """The parameters, description and location of the database."""
        if (database := database_of(namespace)) is None:
            return None
        found = self._calls.read("get_database", "Database", Name=database)
        return None if found is None else _properties(found)

    def update(self, namespace: Namespace, changes: Mapping[str, str], removals: Collection[str]) -> bool:
        """Read, modify, write: databases have no version, so of concurrent updates the last one wins."""
        if (database := database_of(namespace)) is None:
            return False
        if (before := self._calls.read("get_database", "Database", Name=database)) is None:
            return False
        properties = {k: v for k, v in _properties(before).items() if k not in removals} | dict(changes)
        response = self._calls.change(
            "update_database", Name=database, DatabaseInput=_input(database, properties, before)
        )
        return self._calls.settled(response, f"database `{database}`") is GlueResponse.DONE

    def list_below(self, below: Namespace) -> list[Namespace]:
        """All databases; they are not nested."""
        if below:
            return []
        return sorted((d["Name"],) for d in self._calls.pages("get_databases", "DatabaseList"))


def _properties(database: Mapping[str, Any]) -> dict[str, str]:
    fields = {name: database[field] for name, field in _FIELDS.items() if database.get(field)}
    return dict(database.get("Parameters") or {}) | fields


def _input(name: str, properties: Mapping[str, str], before: Mapping[str, Any]) -> dict[str, Any]:
    """The database with these properties; other fields stay."""
    fields = {field: properties[key] for key, field in _FIELDS.items() if key in properties}
    parameters = {k: v for k, v in properties.items() if k not in _FIELDS}
    kept = {k: before[k] for k in _KEPT if k in before}
    return {"Name": name, "Parameters": parameters, **fields, **kept}
