"""Branches of the lake as one caller may use them."""

from typing import Protocol

from bergline.errors import RefusedError
from bergline.governance.grants.privilege import Privilege
from bergline.governance.grants.securable import CATALOG, Securable
from bergline.governance.lake_branches.model import LakeBranch, LakeBranches, NewLakeBranch


class AsksBranchAccess(Protocol):
    """The server's current decisions on access."""

    def may(self, principal: str, groups: frozenset[str], privilege: Privilege, securable: Securable) -> bool:
        """Whether a caller has a privilege."""
        ...

    def may_somewhere(self, principal: str, groups: frozenset[str], privilege: Privilege) -> bool:
        """Whether a caller has a privilege on anything."""
        ...


class GrantedLakeBranches:
    """Everybody sees them; who may write somewhere may create one; its owner and administrators may drop it."""

    def __init__(self, kept: LakeBranches, access: AsksBranchAccess, principal: str, groups: frozenset[str]) -> None:
        self._kept = kept
        self._access = access
        self._who = principal, groups

    def create(self, new: NewLakeBranch) -> LakeBranch:
        if not self._access.may_somewhere(*self._who, Privilege.WRITE):
            raise RefusedError(
                f"cannot create branch `{new.name}` of the lake: `{self._who[0]}` may write nowhere",
                hints=["an administrator can grant `write` on a table or a namespace"],
            )
        return self._kept.create(new)

    def remove(self, name: str) -> None:
        self.check_may_drop(name)
        self._kept.remove(name)

    def check_may_drop(self, name: str) -> LakeBranch:
        branch = self._kept.check_may_drop(name)
        if branch.owner != self._who[0] and not self._access.may(*self._who, Privilege.ADMINISTER, CATALOG):
            raise RefusedError(
                f"cannot drop branch `{name}` of the lake: it belongs to `{branch.owner}`, not to `{self._who[0]}`",
                hints=["its owner or an administrator of the catalog can drop it"],
            )
        return branch

    def find(self, name: str) -> LakeBranch | None:
        return self._kept.find(name)

    def all(self) -> list[LakeBranch]:
        return self._kept.all()
