"""`lake.rules`: rules about refs for many tables at once."""

from collections.abc import Iterable

from bergline.arguments import check_text
from bergline.catalog.identifiers import Namespace, parse_namespace
from bergline.catalog.protection.kept_rules import (
    KeptRule,
    KeptRules,
)
from bergline.catalog.protection.ref_rule import make_rule
from bergline.errors import UnsupportedError


class LakeRules:
    """Rules that hold for all tables of the catalog, or for those in a namespace and below it.

    They are kept in the catalog's database, in addition to those in the properties of tables; all that match a ref
    apply.
    """

    def __init__(self, kept: KeptRules | None) -> None:
        if kept is None:
            raise keeps_none("rules of its own")
        self._kept = kept

    def list(self, namespace: str | Namespace | None = None) -> tuple[KeptRule, ...]:
        """All rules, or those that apply in a namespace: its own, those above it and those of the catalog."""
        return self._kept.rules(None if namespace is None else parse_namespace(namespace))

    def protect(
        self,
        pattern: str,
        *,
        namespace: str | Namespace | None = None,
        kind: str | None = None,
        writers: Iterable[str] | None = None,
        only_publish: bool = False,
        fast_forward_only: bool = False,
        no_drop: bool = False,
        no_move: bool = False,
        no_rollback: bool = False,
        no_expiry: bool = False,
        checks: Iterable[str] = (),
        approvals: int = 0,
        bypass: Iterable[str] = (),
    ) -> None:
        """Protect the refs that match a pattern in all tables, or in those of a namespace; see `table.refs.protect`."""
        rule = make_rule(
            pattern,
            kind=kind,
            writers=writers,
            only_publish=only_publish,
            fast_forward_only=fast_forward_only,
            no_drop=no_drop,
            no_move=no_move,
            no_rollback=no_rollback,
            no_expiry=no_expiry,
            checks=checks,
            approvals=approvals,
            bypass=bypass,
        )
        self._kept.set_rule(() if namespace is None else parse_namespace(namespace), rule)

    def unprotect(self, pattern: str, *, namespace: str | Namespace | None = None) -> None:
        """Remove the rule of a pattern; NotFoundError if there is none."""
        check_text(pattern, "the pattern of a rule")
        self._kept.remove_rule(() if namespace is None else parse_namespace(namespace), pattern)


def keeps_none(what: str) -> UnsupportedError:
    """The error for a catalog that keeps nothing beside its tables."""
    return UnsupportedError(
        f"expected a catalog in SQLite or PostgreSQL, or behind `bergline serve`, which keeps {what}, found another",
        hints=["a table of any catalog has rules of its own: `table.refs.protect`"],
    )
