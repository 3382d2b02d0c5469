"""What statements say about namespaces: made, dropped, altered."""

import msgspec

from bergline.sql.statements.statements import Name


class CreateNamespace(msgspec.Struct, frozen=True):
    """CREATE NAMESPACE, SCHEMA or DATABASE; comment and location are properties."""

    namespace: Name
    if_not_exists: bool = False
    properties: dict[str, str] = {}


class DropNamespace(msgspec.Struct, frozen=True):
    """DROP NAMESPACE; with `cascade` the tables and namespaces in it too."""

    namespace: Name
    if_exists: bool = False
    cascade: bool = False


class AlterNamespace(msgspec.Struct, frozen=True):
    """ALTER NAMESPACE and COMMENT ON NAMESPACE."""

    namespace: Name
    updates: dict[str, str] = {}
    removals: tuple[str, ...] = ()
