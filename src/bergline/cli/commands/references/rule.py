"""`bergline rule`: the rules that protect branches and tags, of the catalog, a namespace or a table."""

from enum import StrEnum
from typing import Annotated, Any

import typer

from bergline.catalog.identifiers import Namespace
from bergline.catalog.protection.kept_rules import KeptRule
from bergline.catalog.protection.ref_protection import ProtectingRule, all_rules
from bergline.catalog.protection.rule_scope import ScopeKind, scope_of
from bergline.cli.arguments import complete_namespace, complete_table
from bergline.cli.opening import LakeOptions, with_lake
from bergline.cli.output.rows import AsJson, print_json, print_lines, print_table
from bergline.errors import InvalidInputError
from bergline.lake.lake import Lake

app = typer.Typer(help="List, set and remove the rules that protect branches and tags.", no_args_is_help=True)

PatternArgument = Annotated[
    str, typer.Argument(help="Which refs: a name, in which * stands for any text", metavar="PATTERN")
]
NamespaceOption = Annotated[
    str | None,
    typer.Option(help="For the tables in this namespace and below it.", autocompletion=complete_namespace),
]
TableOption = Annotated[str | None, typer.Option(help="For this table alone.", autocompletion=complete_table)]


class RefKind(StrEnum):
    """The kinds of refs that a rule can be limited to."""

    BRANCH = "branch"
    TAG = "tag"


@app.command("list")
@with_lake
def list_rules(
    options: LakeOptions, *, namespace: NamespaceOption = None, table: TableOption = None, as_json: AsJson = False
) -> None:
    """List the rules of the catalog and its namespaces, or those that apply in a namespace or to a table."""
    _check_scope(namespace, table)
    with options.open() as lake:
        found = _of_table(lake, table) if table is not None else list(map(_protecting, lake.rules.list(namespace)))
    if as_json:
        print_json([json_rule(rule) for rule in found])
        return
    print_table(["of", "pattern", "rule"], [[_scope(rule), rule.rule.pattern, rule.text] for rule in found])


@app.command("set")
@with_lake
def set_rule(
    options: LakeOptions,
    pattern: PatternArgument,
    *,
    namespace: NamespaceOption = None,
    table: TableOption = None,
    kind: Annotated[RefKind | None, typer.Option(help="Only branches, or only tags.")] = None,
    writers: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Who may change the refs, e.g. etl,group:ops.")
    ] = None,
    only_publish: Annotated[
        bool, typer.Option("--only-publish", help="A branch moves only by publishing or merging another.")
    ] = False,
    fast_forward_only: Annotated[
        bool, typer.Option("--fast-forward-only", help="The head stays in the history.")
    ] = False,
    no_drop: Annotated[bool, typer.Option("--no-drop", help="They are not dropped or renamed.")] = False,
    no_move: Annotated[bool, typer.Option("--no-move", help="The head stays where it is.")] = False,
    no_rollback: Annotated[bool, typer.Option("--no-rollback", help="No snapshot is left behind.")] = False,
    no_expiry: Annotated[bool, typer.Option("--no-expiry", help="No snapshot of a branch is removed.")] = False,
    check: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A check that the new head must have passed; may be repeated."),
    ] = None,
    approvals: Annotated[int, typer.Option(min=0, help="How many others must have approved the new head.")] = 0,
    bypass: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Who is not bound by the rule, and alone may change it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Set the rule of a pattern, replacing an earlier one."""
    _check_scope(namespace, table)
    given: dict[str, Any] = {
        "kind": None if kind is None else str(kind),
        "writers": None if writers is None else _names(writers),
        "only_publish": only_publish,
        "fast_forward_only": fast_forward_only,
        "no_drop": no_drop,
        "no_move": no_move,
        "no_rollback": no_rollback,
        "no_expiry": no_expiry,
        "checks": check or [],
        "approvals": approvals,
        "bypass": [] if bypass is None else _names(bypass),
    }
    with options.open() as lake:
        if table is not None:
            loaded = lake.load_table(table)
            loaded.refs.protect(pattern, **given)
            found = all_rules(loaded.metadata.properties)
        else:
            lake.rules.protect(pattern, namespace=namespace, **given)
            found = tuple(map(_protecting, lake.rules.list(namespace)))
    rule = next(r for r in found if r.rule.pattern == pattern and _is_of(r, namespace, table))
    if as_json:
        print_json(json_rule(rule))
    else:
        print_lines([f"the rule `{pattern}`{_whose(namespace, table)} is: {rule.text}"])


@app.command()
@with_lake
def remove(
    options: LakeOptions,
    pattern: PatternArgument,
    *,
    namespace: NamespaceOption = None,
    table: TableOption = None,
    as_json: AsJson = False,
) -> None:
    """Remove the rule of a pattern."""
    _check_scope(namespace, table)
    with options.open() as lake:
        if table is not None:
            lake.load_table(table).refs.unprotect(pattern)
        else:
            lake.rules.unprotect(pattern, namespace=namespace)
    if as_json:
        print_json({"pattern": pattern, "namespace": namespace, "table": table, "removed": True})
    else:
        print_lines([f"removed the rule `{pattern}`{_whose(namespace, table)}"])


def json_rule(rule: ProtectingRule) -> dict[str, Any]:
    """A rule as `--json` shows it."""
    namespace = ".".join(rule.scope.namespace) or None
    return {
        "pattern": rule.rule.pattern,
        "of": str(rule.scope.kind),
        "namespace": namespace,
        "rule": rule.text,
    }


def _check_scope(namespace: str | None, table: str | None) -> None:
    if namespace is not None and table is not None:
        raise InvalidInputError("expected either --namespace or --table, found both")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _protecting(kept: KeptRule) -> ProtectingRule:
    return ProtectingRule(scope_of(kept.namespace), kept.rule)


def _of_table(lake: Lake, table: str) -> list[ProtectingRule]:
    loaded = lake.load_table(table)
    return list(all_rules(loaded.metadata.properties, loaded.refs.scope_rules()))


def _is_of(rule: ProtectingRule, namespace: str | None, table: str | None) -> bool:
    if table is not None:
        return rule.scope.kind is ScopeKind.TABLE
    asked: Namespace = () if namespace is None else tuple(namespace.split("."))
    return rule.scope.namespace == asked


def _scope(rule: ProtectingRule) -> str:
    return f"{rule.scope.kind} {'.'.join(rule.scope.namespace)}".strip()


def _whose(namespace: str | None, table: str | None) -> str:
    if table is not None:
        return f" of table `{table}`"
    return " of the catalog" if namespace is None else f" of namespace `{namespace}`"
