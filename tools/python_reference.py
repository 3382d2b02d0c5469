"""Write docs/reference/python.md: a signature and a sentence for each public name, taken from the code.

`python tools/python_reference.py` writes the page; a test compares it with what `render()` returns.
"""

import ast
import contextlib
import enum
import functools
import importlib
import inspect
import json
import tempfile
import textwrap
import types
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn, Self

import msgspec
import pyarrow as pa

import bergline
import bergline.errors
from bergline.governance.events.model import LoggedEvent
from bergline.lake.ref_report import RefReport
from bergline.lake.tables import LakeTransaction
from bergline.table.orphans.purge import PurgeResult
from bergline.table.view import View

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "python.md"
COMMAND = "python tools/python_reference.py"

_HEAD = f"""# Python

Every public name with its signature. This page is written from the code by `{COMMAND}`.
For a script that uses most of it, see [Python in one page](../guides/python-in-one-page.md).

Types that signatures mention:

| type | is |
|---|---|
| `ArrowRows` | Arrow data, a pandas or polars DataFrame, a list of dictionaries ([rules](filters-and-rows.md#rows)) |
| `Predicate` | a filter; text is accepted wherever one is ([grammar](filters-and-rows.md#filters)) |
| `SnapshotChoice` | a snapshot id, the name of a branch or tag, or a datetime with a time zone |
| `TableName`, `Namespace` | a parsed name; text such as `"db.orders"` is accepted wherever one is |
| `Isolation` | `"serializable"`, `"snapshot"` or `"none"` |

A method that changes a table is one commit, retried when another writer commits first. Errors are listed on
[their own page](errors.md).
"""

# Public by their spelling only: other parts of the package call them.
_INTERNAL = {
    "Lake": {"catalog"},
    "MaintenancePolicy": {"overridden_by"},
    "PullRequest": {"looked_at"},
    "RefRule": {"about_moves", "applies_to", "is_firm"},
    "Refs": {"scope_rules"},
    "RuleScope": {"correction", "removal", "suffix"},
    "Table": {"check_branch", "commit"},
    "TableMetadata": {"missing_ref"},
    "TableScan": {"as_branch", "branch_read", "followed", "io", "table_identity", "table_schema", "version"},
}
# What a lake's methods return: it imports them later, so their annotations are names.
_OF_LAKES = [LakeTransaction, LoggedEvent, PurgeResult, RefReport, View]
# Plain attributes, which have no docstring of their own.
_ATTRIBUTES = {"Lake.name": "The name of the catalog.", "Table.refs": "Branches and tags: see below."}
# What methods return from these packages is explained above, or by the Iceberg specification.
_BEYOND = (
    "bergline.catalog.catalog",
    "bergline.catalog.identifiers",
    "bergline.expressions",
    "bergline.format.partition",
    "bergline.format.schema",
    "bergline.format.types",
    "bergline.io",
    "bergline.spark.pipeline.audit_kinds",
)


def render() -> str:
    """The whole page."""
    page = _Page()
    with _example() as (lake, table):
        page.functions("`bergline`", bergline, ["connect", "maintain"])
        page.instance("`Lake`", lake, "What `bergline.connect` returns.")
        page.instance("`lake.rules`", lake.rules, "Rules about refs of many tables.")
        page.instance("`lake.branches`", lake.branches, "What `bergline branch` does without a table.")
        page.instance("`lake.reviews`", lake.reviews, "What rules can demand.")
        page.instance("`Table`", table, "What `lake.create_table` and `lake.load_table` return.")
        page.instance("`table.refs`", table.refs, "Branches and tags. Also a mapping of names to refs.")
        page.instance("`lake.pull_requests`", lake.pull_requests, "Branches that ask to be published.")
        table.append(pa.table({"id": [1]}), branch="work")
        page.instance("Pull requests", lake.pull_requests.open("work"), "What `lake.pull_requests` gives.")
        page.instance("Scans", table.scan(), "What `table.scan` and `table.scan_appends` return.")
    spark = importlib.import_module("bergline.spark")
    page.functions("`bergline.spark`", spark, [n for n in spark.__all__ if not inspect.isclass(getattr(spark, n))])
    page.type_("`bergline.spark.Pipeline`", spark.Pipeline)
    page.functions("`bergline.spark.audits`", *_audits())
    exported = [getattr(bergline, name) for name in bergline.__all__]
    page.values("Values", [c for c in exported if inspect.isclass(c) and not issubclass(c, Exception)] + _OF_LAKES)
    page.errors()
    return _HEAD + "".join(page.parts)


class _Page:
    """The parts so far, and the classes that they mention and that have no part of their own yet."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self._seen: set[type] = set()
        self._mentioned: list[type] = []

    def functions(self, title: str, module: types.ModuleType, names: list[str]) -> None:
        self._section(title, "", [self._call(name, getattr(module, name)) for name in names])

    def instance(self, title: str, holder: object, says: str) -> None:
        """Methods and properties as a user's object has them, however the class puts them together."""
        cls = type(holder)
        self._seen.add(cls)
        lines = [self._member(cls, name, holder) for name in _public(holder, cls)]
        self._section(title, f"{says} {_sentence(cls)}", lines)

    def type_(self, title: str, cls: type) -> None:
        self._seen.add(cls)
        lines = [self._call("Pipeline", cls.__init__, owner=cls)]
        lines += [self._member(cls, name) for name in _public(cls, cls)]
        self._section(title, _sentence(cls), lines)

    def values(self, title: str, first: list[type]) -> None:
        """What documented methods return and take, and the structs in their fields."""
        lines = []
        for cls in dict.fromkeys([*first, *self._mentioned]):
            self._mentioned = []
            if self._seen.isdisjoint(cls.__mro__):
                lines.append(self._value(cls))
            lines += [self._value(field) for field in dict.fromkeys(self._mentioned) if field not in self._seen]
        lines.sort(key=lambda line: line.partition("`")[2].lower())
        self._section(title, "What methods return or take; fields are read by attribute.", lines)

    def errors(self) -> None:
        names = [n for n, c in vars(bergline.errors).items() if isinstance(c, type) and issubclass(c, Exception)]
        lines = [f"- `{n}`: {_sentence(getattr(bergline.errors, n))}" for n in names]
        self._section("`bergline.errors`", "What to do about each: [errors](errors.md).", lines)

    def _value(self, cls: type) -> str:
        self._seen.add(cls)
        lines = [f"- `{cls.__name__}`: {_sentence(cls)}"]
        fields = _fields(cls)
        if fields:
            shown = ", ".join(f"`{name}: {text}`" for name, text in fields.items())
            lines.append(f"  Fields: {shown}.")
            for annotation in _hints(cls).values():
                self._mention(annotation)
        members = [n for n in _public(cls, cls) if n not in fields]
        lines += [f"  {self._member(cls, name)}" for name in members]
        return "\n".join(lines)

    def _member(self, cls: type, name: str, holder: object = None) -> str:
        static = inspect.getattr_static(cls, name, None)
        if isinstance(static, property | functools.cached_property):
            getter = static.fget if isinstance(static, property) else static.func
            assert getter is not None  # noqa: S101
            self._mention(inspect.signature(getter).return_annotation)
            return f"- `{name}: {_returns(getter, cls)}`: {_sentence(getter)}"
        value = getattr(cls if holder is None or static is not None else holder, name)
        if not callable(value):
            return f"- `{name}`: {_ATTRIBUTES.get(f'{cls.__name__}.{name}') or _sentence(type(value))}"
        return self._call(name, value, owner=cls)

    def _call(self, name: str, function: Callable[..., Any], owner: type | None = None) -> str:
        plain = inspect.unwrap(getattr(function, "__func__", function))
        self._mention(inspect.signature(plain).return_annotation)
        chained = owner is not None and inspect.signature(function).return_annotation is Self
        returns = owner.__name__ if owner is not None and chained else _returns(plain, owner)
        return f"- `{name}{_signature(plain, returns)}`: {_sentence(owner if name == 'Pipeline' and owner else plain)}"

    def _mention(self, annotation: Any) -> None:
        for part in typing.get_args(annotation):
            self._mention(part)
        if isinstance(annotation, type) and annotation.__module__.startswith("bergline."):
            is_plain = issubclass(annotation, enum.Enum | Exception) or annotation.__module__.startswith(_BEYOND)
            if not is_plain:
                self._mentioned.append(annotation)

    def _section(self, title: str, says: str, lines: list[str]) -> None:
        body = "\n".join(lines)
        self.parts.append(f"\n## {title}\n\n" + (f"{says}\n\n" if says else "") + f"{body}\n")


@contextlib.contextmanager
def _example() -> Iterator[tuple[bergline.Lake, bergline.Table]]:
    with (
        tempfile.TemporaryDirectory() as directory,
        bergline.connect(f"sqlite:///{directory}/catalog.db", create=True) as lake,
    ):
        lake.create_namespace("db")
        yield lake, lake.create_table("db.orders", pa.schema([("id", pa.int64())]))


def _audits() -> tuple[types.ModuleType, list[str]]:
    module = importlib.import_module("bergline.spark.audits")
    names = [n for n, f in vars(module).items() if inspect.isfunction(f) and f.__module__ == module.__name__]
    return module, [n for n in names if not n.startswith("_")]


def _public(holder: object, cls: type) -> list[str]:
    """Names without an underscore, in the order of the alphabet; what bases outside of the package bring is theirs."""
    internal = set().union(*(_INTERNAL.get(c.__name__, set()) for c in cls.__mro__))
    foreign = {n for c in cls.__mro__ if not c.__module__.startswith("bergline") for n in vars(c)}
    refused = {n for n in dir(cls) if _annotations(getattr(cls, n)).get("return") is NoReturn}
    names = {n for n in dir(holder) if not n.startswith("_")} - internal - refused
    return sorted(n for n in names if n not in foreign or any(n in vars(c) for c in _own(cls)))


def _annotations(of: Any) -> dict[str, Any]:
    return inspect.get_annotations(of) if inspect.isfunction(of) else {}


def _own(cls: type) -> list[type]:
    return [c for c in cls.__mro__ if c.__module__.startswith("bergline")]


def _fields(cls: type) -> dict[str, str]:
    """The fields of a struct, with their types as the source has them."""
    if not (isinstance(cls, type) and issubclass(cls, msgspec.Struct)):
        return {}
    found: dict[str, str] = {}
    for own in reversed(_own(cls)):
        for node in _tree(own).body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                found[node.target.id] = _text(node.annotation)
    return {name: text for name, text in found.items() if not name.startswith("_")}


def _hints(cls: type) -> dict[str, Any]:
    return {n: t for c in reversed(_own(cls)) for n, t in inspect.get_annotations(c).items() if not n.startswith("_")}


def _signature(function: Callable[..., Any], returns: str) -> str:
    node = _tree(function)
    written = {a.arg: a.annotation for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
    shown, bare_star = [], False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in {"self", "cls"}:
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            bare_star = True
            vararg = node.args.vararg.annotation
            shown.append(f"*{parameter.name}" + (f": {_text(vararg)}" if vararg is not None else ""))
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            shown.append(f"**{parameter.name}")
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not bare_star:
            bare_star = True
            shown.append("*")
        annotation = written.get(parameter.name)
        text = parameter.name + (f": {_text(annotation)}" if annotation is not None else "")
        if parameter.default is not parameter.empty:
            text += f" = {_default(parameter.default)}"
        shown.append(text)
    arrow = "" if function.__name__ == "__init__" else f" -> {returns}"
    return f"({', '.join(shown)}){arrow}"


def _returns(function: Callable[..., Any], owner: type | None) -> str:
    node = _tree(function)
    text = "None" if node.returns is None else _text(node.returns)
    if any(_text(d).endswith("contextmanager") for d in node.decorator_list):
        text = text.replace("Iterator[", "ContextManager[", 1)
    return text.replace("Self", owner.__name__) if owner else text


def _default(value: Any) -> str:
    if callable(value):
        return str(value.__name__)
    return json.dumps(value) if isinstance(value, str) else repr(value)


@functools.cache
def _tree(of: Any) -> Any:
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(of))).body
    return node


def _text(annotation: ast.expr) -> str:
    """An annotation as written, without the quotes of names that come later in their module."""
    text = ast.unparse(annotation)
    return text if "Literal[" in text else text.replace("'", "")


def _sentence(of: Any) -> str:
    """The first paragraph of a docstring."""
    text = inspect.getdoc(of) or ""
    return " ".join(text.partition("\n\n")[0].split())


if __name__ == "__main__":
    PAGE.write_text(render())
