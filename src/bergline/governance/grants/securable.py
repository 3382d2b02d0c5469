"""Securables: the catalog, a namespace with everything below it, a table or a view."""

from enum import StrEnum
from typing import Final

import msgspec

from bergline.catalog.identifiers import Namespace, TableName, check_lengths, parse_namespace, parse_table_name
from bergline.errors import InvalidInputError

ALL_REFS: Final = "*"
"""As the ref of a question, it needs a grant that is not limited to some refs."""


class SecurableKind(StrEnum):
    """The kinds of securables."""

    CATALOG = "catalog"
    NAMESPACE = "namespace"
    TABLE = "table"
    VIEW = "view"


class Securable(msgspec.Struct, frozen=True, order=True):
    """What a grant is about.

    In a grant `ref` is a pattern of names, or None for all refs. When a privilege is checked, it is the name of one
    ref; None checks for a grant on any ref.
    """

    kind: SecurableKind
    namespace: Namespace = ()
    name: str = ""
    ref: str | None = None

    def __str__(self) -> str:
        of_ref = "" if self.ref is None else f" ref {self.ref}"
        return f"{self.kind} {self.path}".strip() + of_ref

    @property
    def path(self) -> str:
        """Its name with dots; empty for the catalog."""
        return ".".join((*self.namespace, self.name) if self.name else self.namespace)

    @property
    def table_name(self) -> TableName:
        """The name of a table or view."""
        return TableName(self.namespace, self.name)

    @property
    def described(self) -> str:
        """For messages: table `db.orders`."""
        path = f" `{self.path}`" if self.path else ""
        return f"the {self.kind}" if not path else f"{self.kind}{path}"

    def at(self, ref: str | None) -> "Securable":
        """The same securable, limited to one of its refs."""
        return msgspec.structs.replace(self, ref=ref)

    @property
    def parent(self) -> "Securable":
        """What contains it: a namespace, or the catalog."""
        above = self.namespace if self.name else self.namespace[:-1]
        return namespace_of(above) if above else CATALOG


CATALOG: Final = Securable(SecurableKind.CATALOG)


def namespace_of(namespace: Namespace) -> Securable:
    """A namespace, and everything below it."""
    return Securable(SecurableKind.NAMESPACE, namespace)


def table_of(name: TableName, ref: str | None = None) -> Securable:
    """A table."""
    return Securable(SecurableKind.TABLE, name.namespace, name.name, ref)


def view_of(name: TableName) -> Securable:
    """A view."""
    return Securable(SecurableKind.VIEW, name.namespace, name.name)


def parse_securable(text: str | Securable) -> Securable:
    """`catalog`, `namespace db.raw`, `table db.orders` or `view db.recent`."""
    if isinstance(text, Securable):
        return text
    kind, _, name = text.strip().partition(" ")
    return make_securable(kind, name.strip() or None)


def make_securable(kind: str, name: str | None) -> Securable:
    """A securable from its kind and its name with dots."""
    known = kind.lower()
    if known not in list(SecurableKind):
        raise InvalidInputError(
            f"expected `catalog`, `namespace db`, `table db.orders` or `view db.recent`, found `{kind[:80]}`"
        )
    if known == SecurableKind.CATALOG:
        if name:
            raise InvalidInputError(f"expected `catalog` alone, found `{name[:80]}` behind it")
        return CATALOG
    if not name:
        raise InvalidInputError(f"expected the name of a {known}, found none")
    if known == SecurableKind.NAMESPACE:
        levels = parse_namespace(name)
        check_lengths(".".join(levels))
        return namespace_of(levels)
    parsed = parse_table_name(name)
    check_lengths(".".join(parsed.namespace), parsed.name)
    return Securable(SecurableKind(known), parsed.namespace, parsed.name)
