"""Who may do what, as a server knows it: grants in memory, read again when they are two seconds old.

So what was revoked elsewhere is refused two seconds later at most, and what was granted is allowed at once: before
anybody is refused, the version in the database is looked at. Where there is a policy too, it is asked about what grants
allow.
"""

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from bergline.errors import BerglineError, NotFoundError, RefusedError
from bergline.governance.grants.access_rules import AccessDecision, AccessRules, CallerAccess, UnlimitedAccess
from bergline.governance.grants.privilege import Privilege
from bergline.governance.grants.refusals import concealed, forbidden, hidden
from bergline.governance.grants.securable import CATALOG, Securable, table_of, view_of
from bergline.governance.grants.store import SqlGrants
from bergline.server.access.policy import Policy, PolicyQuestion, refused_by_policy

FRESH_S: Final = 2.0
_Item = TypeVar("_Item")
_UNLIMITED: Final = UnlimitedAccess()


class Access:
    """The grants of one catalog, as they were a moment ago, and what a policy takes away of them."""

    def __init__(
        self, store: SqlGrants, clock: Callable[[], float] = time.monotonic, policy: Policy | None = None
    ) -> None:
        self.store = store
        self.policy = policy
        self._clock = clock
        self._lock = threading.Lock()
        self._version = -1
        self._rules = AccessRules()
        self._fresh_until = float("-inf")

    @property
    def is_fresh(self) -> bool:
        """Whether what grants say needs no look at the database."""
        return self._clock() < self._fresh_until

    @property
    def is_active(self) -> bool:
        """Whether somebody may be refused: there is a grant, so that everything else is denied, or a policy."""
        return self.policy is not None or self.rules().is_active

    def rules(self) -> AccessRules:
        """The rules, read again if they are not fresh."""
        return self._rules if self.is_fresh else self.refresh()

    def refresh(self) -> AccessRules:
        """The rules as they are now."""
        with self._lock:
            asked_at = self._clock()
            now = self.store.versions()
            if not now.oldest_complete <= self._version <= now.newest:
                self._version, self._rules = self.store.rules((self._version, self._rules))
            elif self._version != now.newest:
                self._rules.note_owners(self.store.owners_since(self._version))
                self._version = now.newest
            self._fresh_until = asked_at + FRESH_S
            return self._rules

    def may(self, principal: str, groups: frozenset[str], privilege: Privilege, securable: Securable) -> bool:
        """Whether a caller has a privilege; everybody has all of them while there is no grant, and no policy."""
        if self._granted(principal, groups, privilege, securable) is not AccessDecision.ALLOWED:
            return False
        return self._taken_away(principal, groups, privilege, securable) is None

    def may_somewhere(self, principal: str, groups: frozenset[str], privilege: Privilege) -> bool:
        """Whether grants have a privilege on anything; no policy is asked, which decides on each thing."""
        return self.newest(principal, groups).may_somewhere(privilege)

    def _granted(
        self,
        principal: str,
        groups: frozenset[str],
        privilege: Privilege | None,
        securable: Securable,
        seen: Securable | None = None,
    ) -> AccessDecision:
        """What grants say of one privilege; nobody is refused by rules that are not the newest."""
        found = _decided(self.rules(), (principal, groups), privilege, securable, seen)
        if found is AccessDecision.ALLOWED:
            return found
        return _decided(self.refresh(), (principal, groups), privilege, securable, seen)

    def check(
        self,
        principal: str,
        groups: frozenset[str],
        privilege: Privilege | None,
        securable: Securable,
        seen: Securable | None = None,
    ) -> None:
        """RefusedError without the privilege, NotFoundError for what may not be seen.

        UnavailableError if there is a policy that cannot be asked.
        """
        decision = self._granted(principal, groups, privilege, securable, seen)
        if decision is AccessDecision.HIDDEN:
            raise hidden(seen or securable)
        if decision is AccessDecision.FORBIDDEN and privilege is not None:
            raise forbidden(principal, privilege, seen or securable if privilege is Privilege.CREATE else securable)
        asked = seen or securable if privilege is None else securable
        if privilege is None and asked == CATALOG:
            return  # everybody sees it
        refused = self._taken_away(principal, groups, privilege or Privilege.LIST, asked)
        if refused is not None:
            raise refused

    def forbidden(
        self, principal: str, groups: frozenset[str], any_of: Sequence[Privilege], securable: Securable
    ) -> RefusedError:
        """The error for a caller who has none of some privileges, by grants or because the policy takes it away."""
        for privilege in any_of:
            if self._granted(principal, groups, privilege, securable) is AccessDecision.ALLOWED:
                refused = self._taken_away(principal, groups, privilege, securable)
                if refused is not None:
                    return refused
        return forbidden(principal, any_of[-1], securable)

    def allows_at_once(
        self, principal: str, groups: frozenset[str], privilege: Privilege, securable: Securable
    ) -> bool:
        """Whether something is certainly allowed, without a look at the database or a question to a policy."""
        allowed, who = AccessDecision.ALLOWED, (principal, groups)
        if not self.is_fresh or _decided(self._rules, who, privilege, securable, None) is not allowed:
            return False
        if self.policy is None:
            return True
        answer = self.policy.known(PolicyQuestion(*who, privilege, securable))
        return answer is not None and answer.allow

    def newest(self, principal: str, groups: frozenset[str] = frozenset()) -> CallerAccess:
        """What a caller may do by the newest grants, for many names at once: no policy is asked about these."""
        rules = self.refresh()
        return rules.of(principal, groups) if rules.is_active else _UNLIMITED

    def seen(
        self, principal: str, groups: frozenset[str], items: Iterable[_Item], securable: Callable[[_Item], Securable]
    ) -> list[_Item]:
        """Those of a list that a caller may see."""
        by = self.newest(principal, groups)
        return [item for item in items if by.sees(securable(item))]

    def _taken_away(
        self, principal: str, groups: frozenset[str], privilege: Privilege, securable: Securable
    ) -> RefusedError | None:
        """The error for what the policy takes away; None for what it leaves, and without a policy."""
        if self.policy is None:
            return None
        question = PolicyQuestion(principal, groups, privilege, securable)
        answer = self.policy.ask(question)
        return None if answer.allow else refused_by_policy(question, answer)

    def conceal(self, error: BerglineError, known: Callable[[], Iterable[str]]) -> BerglineError:
        """An error; that for a missing name has only near names that the caller may know, while there are grants."""
        return concealed(error, known) if isinstance(error, NotFoundError) and self.is_active else error

    def conceal_neighbour(self, principal: str, groups: frozenset[str], error: BerglineError) -> BerglineError:
        """An error; one that names another table or view does so only for callers who may see that."""
        if error.told is None:
            return error
        seen = CATALOG
        if error.neighbour is not None:
            kind, name = error.neighbour
            seen = view_of(name) if kind == "view" else table_of(name)
        by = self.newest(principal, groups)
        is_known = by.may(Privilege.READ, CATALOG) if seen == CATALOG else by.sees(seen)
        return error if is_known else error.told


class CallerOf:
    """What one caller may do: shown by the grants of one moment, and checked by those of each."""

    def __init__(self, access: Access, principal: str, groups: frozenset[str] = frozenset()) -> None:
        self._access = access
        self._who = principal, groups
        self._newest = access.newest(*self._who)

    def check(self, privilege: Privilege | None, securable: Securable, seen: Securable | None = None) -> None:
        """RefusedError without the privilege, NotFoundError for what may not be seen."""
        self._access.check(*self._who, privilege, securable, seen)

    def sees(self, securable: Securable) -> bool:
        """Whether the caller may know of something."""
        return self._newest.sees(securable)

    def may(self, privilege: Privilege, securable: Securable) -> bool:
        """Whether the caller has a privilege."""
        return self._newest.may(privilege, securable)


def _decided(
    rules: AccessRules,
    who: tuple[str, frozenset[str]],
    privilege: Privilege | None,
    securable: Securable,
    seen: Securable | None,
) -> AccessDecision:
    if not rules.is_active:
        return AccessDecision.ALLOWED
    return rules.of(*who).decide(privilege, securable, seen)
