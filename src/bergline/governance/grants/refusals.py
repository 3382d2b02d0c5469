"""The errors for callers who may not do or see something."""

from collections.abc import Callable, Iterable

from bergline.errors import NotFoundError, RefusedError
from bergline.governance.grants.privilege import Privilege
from bergline.governance.grants.securable import Securable, SecurableKind

CONCEALED = frozenset({"namespace", "table", "view", "dropped table", "role"})


class HiddenError(NotFoundError):
    """Something may not be seen; the caller gets the same answer as for a name that does not exist."""


def forbidden(caller: str, privilege: Privilege, securable: Securable) -> RefusedError:
    """The error for an action that is not allowed on something visible."""
    ref = "" if securable.ref in {None, "*"} else f" for ref `{securable.ref}`"
    who = "an administrator of the catalog"
    if securable.kind is not SecurableKind.CATALOG:
        who = f"an owner of {securable.described} or {who}"
    return RefusedError(
        f"expected the privilege `{privilege}` on {securable.described}{ref}, found that `{caller}` does not have it",
        hints=[f"{who} can grant it"],
    )


def hidden(securable: Securable) -> HiddenError:
    """The error for something that may not be seen: the same as if it did not exist."""
    kind, path = securable.kind.value, securable.path
    return HiddenError(f"no {kind} `{path}`", kind=kind, name=path)


def concealed(error: NotFoundError, known: Callable[[], Iterable[str]] = tuple) -> NotFoundError:
    """The error for a missing name, with similar ones of the names that the caller may know."""
    if error.kind not in CONCEALED:
        return error
    return NotFoundError(f"no {error.kind} `{error.name}`", kind=error.kind, name=error.name, known=known())
