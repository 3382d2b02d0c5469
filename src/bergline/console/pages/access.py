"""Access: the roles, grants and owners of a catalog, for its administrators."""

from typing import Any

from bergline.console.page import Page, PageQuery, Source
from bergline.errors import BerglineError
from bergline.governance.grants.access_rules import AccessRules
from bergline.governance.grants.grant import parse_grantee

_MOST = 1000


def access_page(source: Source, query: PageQuery) -> Page:
    """All grants, or those to somebody (`to`)."""
    to = query.get("to", "").strip()
    values: dict[str, Any] = {"to": to, "roles": [], "grants": [], "is_active": False, "more": 0, "problem": None}
    who = parse_grantee(to) if to else None
    try:
        access = source.lake.access
        rules = AccessRules(access.grants(), access.roles())
    except BerglineError as error:
        values["problem"] = {"message": str(error), "hints": list(error.hints)}
    else:
        shown = [grant for grant in rules.grants if who in {None, grant.grantee}]
        values |= {
            "is_active": rules.is_active,
            "roles": [{"name": r.name, "members": [str(m) for m in r.members]} for r in rules.roles.values()],
            "grants": [
                {
                    "to": str(grant.grantee),
                    "privilege": grant.privilege.value,
                    "on": str(grant.securable.at(None)),
                    "ref": grant.securable.ref,
                }
                for grant in shown[:_MOST]
            ],
            "more": max(0, len(shown) - _MOST),
        }
    return Page("Access", "access.html", values)
