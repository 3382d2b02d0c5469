"""Grants, roles and owners in a catalog's database.

Every change increments a version, and adds a row to the audit log in its transaction. The version's row is locked
first, so changes happen one after the other.
"""

import contextlib
import time
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa

from bergline.catalog.protection.caller import current_caller
from bergline.catalog.sql.database import SqlDatabase
from bergline.catalog.sql.governance_layout import ACCESS, GRANTS, IS_NOBODYS, OWNERS, ROLE_MEMBERS, ROLES
from bergline.catalog.sql.layout import join_namespace
from bergline.catalog.sql.layout_version import GOVERNANCE_VERSION
from bergline.catalog.sql.migrations import find_layout
from bergline.catalog.sql.records import AuditEntry, Records
from bergline.errors import AlreadyExistsError, InvalidInputError, NotFoundError, RefusedError
from bergline.governance.grants.access_rules import AccessRules, OwnerIndex
from bergline.governance.grants.grant import Grant, Grantee, GranteeKind, Role, check_name
from bergline.governance.grants.privilege import Privilege
from bergline.governance.grants.securable import CATALOG, Securable, SecurableKind

_FIRST_VERSION = 1
_NOBODY = ""
_KEPT_VERSIONS = 10_000
_CLEANUP_INTERVAL = 1000


class AccessVersions(NamedTuple):
    """Versions: after the last change of any kind, and after the last one of a grant or role."""

    newest: int
    of_grants: int

    @property
    def oldest_complete(self) -> int:
        """The version from which on all changes of owners are recorded."""
        return max(self.of_grants, self.newest - _KEPT_VERSIONS)


class SqlGrants:
    """The grants, roles and owners of one catalog, for whoever may connect to its database.

    `from_afar` is for a server that acts for others: it can neither make the first grant nor remove the last.
    """

    def __init__(self, database: SqlDatabase, catalog_name: str, *, from_afar: bool = False) -> None:
        self._database = database
        self._catalog = catalog_name
        self._from_afar = from_afar
        self._records = Records(database, catalog_name)
        self._is_there = False
        self._versions_query = sa.select(ACCESS.c.version, ACCESS.c.grants_version).where(
            ACCESS.c.catalog_name == catalog_name
        )

    def versions(self) -> AccessVersions:
        """The current versions; zeros before the first change."""
        with self._reading() as connection:
            return AccessVersions(0, 0) if connection is None else self._versions(connection)

    def rules(self, known: tuple[int, AccessRules] | None = None) -> tuple[int, AccessRules]:
        """Everything at one version; empty in a database of an older layout.

        Of owners only what has changed is read if rules of a version that is not too old are known.
        """
        with self._reading() as connection:
            if connection is None:
                return 0, AccessRules()
            while True:
                before = self._versions(connection)
                owners: dict[Securable, Grantee] | OwnerIndex
                if known is not None and before.newest - _KEPT_VERSIONS <= known[0] <= before.newest:
                    owners = known[1].owners
                    owners.note(self._owners_since(connection, known[0]))
                else:
                    owners = self._owners(connection)
                found = AccessRules(self._grants(connection).values(), self._roles(connection), owners)
                if self._versions(connection) == before:
                    return before.newest, found

    def owners_since(self, version: int) -> dict[Securable, Grantee | None]:
        """The changes of owners since a version; None if an owner was removed."""
        with self._reading() as connection:
            return {} if connection is None else self._owners_since(connection, version)

    def grants(self) -> list[Grant]:
        return sorted(self.numbered_grants().values(), key=str)

    def numbered_grants(self) -> dict[int, Grant]:
        """All grants by their numbers."""
        with self._reading() as connection:
            return {} if connection is None else self._grants(connection)

    def grant(self, grants: Collection[Grant]) -> None:
        with self._changing() as connection:
            known = set(self._grants(connection).values())
            first = not known
            if first and self._from_afar:
                raise RefusedError(
                    "cannot grant anything yet: the first grant of a catalog is made in its database",
                    hints=["`bergline grant administer on catalog to NAME` with the catalog's own URI, on its machine"],
                )
            if first and not any(_administers(grant) for grant in grants):
                raise InvalidInputError(
                    "expected `administer on catalog` as the first grant, found another: nobody could grant more",
                    hints=["`bergline grant administer on catalog to NAME` first"],
                )
            for grant in grants:
                self._check_role(connection, grant.grantee)
                if grant not in known:
                    connection.execute(sa.insert(GRANTS).values(self._row(grant)))
                    self._audit(connection, "grant", str(grant))

    def revoke(self, grants: Collection[Grant]) -> None:
        with self._changing() as connection:
            numbers = {grant: number for number, grant in self._grants(connection).items()}
            for grant in grants:
                if grant not in numbers:
                    raise NotFoundError(
                        f"no grant `{grant}`", kind="grant", name=str(grant), known=[str(known) for known in numbers]
                    )
                connection.execute(sa.delete(GRANTS).where(GRANTS.c.id == numbers.pop(grant)))
                self._audit(connection, "revoke", str(grant))
            self._check_administered(numbers)

    def roles(self) -> list[Role]:
        with self._reading() as connection:
            return [] if connection is None else self._roles(connection)

    def create_role(self, name: str) -> None:
        check_name(name, "role")
        with self._changing() as connection:
            if self._from_afar and not self._grants(connection):
                raise RefusedError("cannot create a role yet: the first grant is made in the catalog's database")
            if any(role.name == name for role in self._roles(connection)):
                raise AlreadyExistsError(f"role `{name}` exists already", kind="role", name=name)
            connection.execute(sa.insert(ROLES).values(catalog_name=self._catalog, role=name))
            self._audit(connection, "create_role", name)

    def drop_role(self, name: str) -> None:
        with self._changing() as connection:
            self._check_role(connection, Grantee(GranteeKind.ROLE, name))
            for table in (ROLE_MEMBERS, ROLES):
                connection.execute(sa.delete(table).where(table.c.catalog_name == self._catalog, table.c.role == name))
            mine = GRANTS.c.catalog_name == self._catalog
            to_role = sa.and_(GRANTS.c.grantee_kind == GranteeKind.ROLE.value, GRANTS.c.grantee == name)
            connection.execute(sa.delete(GRANTS).where(mine, to_role))
            owned = sa.and_(OWNERS.c.owner_kind == GranteeKind.ROLE.value, OWNERS.c.owner == name)
            nobody = {"owner_kind": _NOBODY, "owner": _NOBODY, "version": self._versions(connection).newest}
            connection.execute(sa.update(OWNERS).where(OWNERS.c.catalog_name == self._catalog, owned).values(nobody))
            self._audit(connection, "drop_role", name)
            self._check_administered(self._grants(connection).values())

    def change_members(self, role: str, add: Collection[Grantee], remove: Collection[Grantee]) -> None:
        with self._changing() as connection:
            found = self._check_role(connection, Grantee(GranteeKind.ROLE, role))
            for member in add:
                row = {"catalog_name": self._catalog, "role": role, "member_kind": member.kind.value}
                insert = self._database.insert(ROLE_MEMBERS).values(row | {"member": member.name})
                connection.execute(insert.on_conflict_do_nothing())
                self._audit(connection, "add_to_role", f"{role} {member}")
            for member in remove:
                if found is None or member not in found.members:
                    raise NotFoundError(f"no member `{member}` in role `{role}`", kind="member", name=str(member))
                members = ROLE_MEMBERS.c
                which = (members.role == role, members.member_kind == member.kind.value, members.member == member.name)
                connection.execute(sa.delete(ROLE_MEMBERS).where(members.catalog_name == self._catalog, *which))
                self._audit(connection, "remove_from_role", f"{role} {member}")

    def owners(self) -> dict[Securable, Grantee]:
        with self._reading() as connection:
            return {} if connection is None else self._owners(connection)

    def set_owner(self, securable: Securable, owner: Grantee) -> None:
        if securable.kind is SecurableKind.CATALOG:
            raise InvalidInputError(
                "expected a namespace, table or view to have an owner, found the catalog",
                hints=["`administer on catalog` is the same for all of it"],
            )
        with self._database.changing() as connection:
            self._put_owner(connection, securable, owner, self._count(connection))
            self._check_role(connection, owner)
            self._audit(connection, "set_owner", f"{securable} to {owner}")

    def note_owner(self, connection: sa.Connection, securable: Securable, owner: Grantee | None) -> None:
        """Record the owner of something in the transaction that creates or drops it; None for no owner."""
        if owner is None and self.owner_in(connection, securable) is None:
            return
        version = self._count(connection)
        self._put_owner(connection, securable, owner, version)
        if version % _CLEANUP_INTERVAL == 0:
            old = OWNERS.c.version <= version - _KEPT_VERSIONS
            mine = OWNERS.c.catalog_name == self._catalog
            connection.execute(sa.delete(OWNERS).where(mine, old, IS_NOBODYS))

    def owner_in(self, connection: sa.Connection, securable: Securable) -> Grantee | None:
        """The owner of something; None if it has none."""
        row = connection.execute(sa.select(OWNERS).where(self._of(OWNERS, securable))).one_or_none()
        return None if row is None else _owner(row)

    def note_rename(self, connection: sa.Connection, before: Securable, after: Securable) -> None:
        """Move owner and grants with a table or view, in the transaction that renames it."""
        owner = self.owner_in(connection, before)
        held = connection.execute(sa.select(GRANTS.c.id).where(self._of(GRANTS, before)).limit(1)).first()
        if held is not None:
            self._count(connection, of_grants=True)
            new = {"namespace": join_namespace(after.namespace), "name": after.name}
            connection.execute(sa.update(GRANTS).where(self._of(GRANTS, before)).values(new))
        self.note_owner(connection, after, owner)
        self.note_owner(connection, before, None)

    def _put_owner(self, connection: sa.Connection, securable: Securable, owner: Grantee | None, version: int) -> None:
        kind, name = (_NOBODY, _NOBODY) if owner is None else (owner.kind.value, owner.name)
        said = {"owner_kind": kind, "owner": name, "version": version}
        insert = self._database.insert(OWNERS).values({"catalog_name": self._catalog} | _columns(securable) | said)
        connection.execute(insert.on_conflict_do_update(index_elements=list(OWNERS.primary_key), set_=said))

    def _check_role(self, connection: sa.Connection, grantee: Grantee) -> Role | None:
        """NotFoundError if a grantee is a role that does not exist."""
        if grantee.kind is not GranteeKind.ROLE:
            return None
        roles = {role.name: role for role in self._roles(connection)}
        if grantee.name not in roles:
            raise NotFoundError(f"no role `{grantee.name}`", kind="role", name=grantee.name, known=roles)
        return roles[grantee.name]

    def _check_administered(self, left: Collection[Grant]) -> None:
        if any(_administers(grant) for grant in left) or not (left or self._from_afar):
            return
        raise RefusedError(
            "cannot remove the last `administer on catalog`: nobody could grant anything any more",
            hints=["grant it to somebody else first"],
        )

    def _audit(self, connection: sa.Connection, operation: str, what: str) -> None:
        now = time.time_ns() // 1_000_000
        self._records.add_audit(connection, AuditEntry(now, current_caller().name, operation, f"access/{what}"))

    @contextlib.contextmanager
    def _changing(self) -> Iterator[sa.Connection]:
        with self._database.changing() as connection:
            self._count(connection, of_grants=True)
            yield connection

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sa.Connection | None]:
        """A connection for reading; None if the database has no grants yet."""
        with self._database.reading() as connection:
            self._is_there = self._is_there or find_layout(connection).version >= GOVERNANCE_VERSION
            yield connection if self._is_there else None

    def _count(self, connection: sa.Connection, *, of_grants: bool = False) -> int:
        """Increment the version, and lock out other changes until the end of the transaction."""
        first = {"version": _FIRST_VERSION, "grants_version": _FIRST_VERSION}
        more: dict[str, Any] = {"version": ACCESS.c.version + 1}
        if of_grants:
            more["grants_version"] = ACCESS.c.version + 1
        insert = self._database.insert(ACCESS).values({"catalog_name": self._catalog} | first)
        connection.execute(insert.on_conflict_do_update(index_elements=list(ACCESS.primary_key), set_=more))
        return self._versions(connection).newest

    def _versions(self, connection: sa.Connection) -> AccessVersions:
        row = connection.execute(self._versions_query).one_or_none()
        return AccessVersions(0, 0) if row is None else AccessVersions(*row)

    def _grants(self, connection: sa.Connection) -> dict[int, Grant]:
        query = sa.select(GRANTS).where(GRANTS.c.catalog_name == self._catalog).order_by(GRANTS.c.id)
        return {
            row.id: Grant(
                Grantee(GranteeKind(row.grantee_kind), row.grantee),
                Privilege(row.privilege),
                msgspec.structs.replace(_securable(row), ref=row.ref),
            )
            for row in connection.execute(query)
        }

    def _roles(self, connection: sa.Connection) -> list[Role]:
        names = sa.select(ROLES.c.role).where(ROLES.c.catalog_name == self._catalog)
        members: dict[str, list[Grantee]] = {name: [] for name in connection.execute(names).scalars()}
        query = sa.select(ROLE_MEMBERS).where(ROLE_MEMBERS.c.catalog_name == self._catalog)
        for row in connection.execute(query):
            members.setdefault(row.role, []).append(Grantee(GranteeKind(row.member_kind), row.member))
        return sorted(Role(name, tuple(sorted(of))) for name, of in members.items())

    def _owners(self, connection: sa.Connection) -> dict[Securable, Grantee]:
        query = sa.select(OWNERS).where(OWNERS.c.catalog_name == self._catalog)
        found = ((_securable(row), _owner(row)) for row in connection.execute(query))
        return {securable: owner for securable, owner in found if owner is not None}

    def _owners_since(self, connection: sa.Connection, version: int) -> dict[Securable, Grantee | None]:
        query = sa.select(OWNERS).where(OWNERS.c.catalog_name == self._catalog, OWNERS.c.version > version)
        return {_securable(row): _owner(row) for row in connection.execute(query)}

    def _row(self, grant: Grant) -> dict[str, Any]:
        return {
            "catalog_name": self._catalog,
            "grantee_kind": grant.grantee.kind.value,
            "grantee": grant.grantee.name,
            "privilege": grant.privilege.value,
            "ref": grant.securable.ref,
        } | _columns(grant.securable)

    def _of(self, table: sa.Table, securable: Securable) -> sa.ColumnElement[bool]:
        columns = _columns(securable)
        return sa.and_(table.c.catalog_name == self._catalog, *(table.c[key] == columns[key] for key in columns))


def _administers(grant: Grant) -> bool:
    return grant.privilege is Privilege.ADMINISTER and grant.securable == CATALOG


def _columns(securable: Securable) -> dict[str, str]:
    namespace = join_namespace(securable.namespace)
    return {"securable_kind": securable.kind.value, "namespace": namespace, "name": securable.name}


def _owner(row: Any) -> Grantee | None:
    return None if row.owner_kind == _NOBODY else Grantee(GranteeKind(row.owner_kind), row.owner)


def _securable(row: Any) -> Securable:
    levels = tuple(row.namespace.split(".")) if row.namespace else ()
    return Securable(SecurableKind(row.securable_kind), levels, row.name)
