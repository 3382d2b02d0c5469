"""Mutants of the modules that decide who gets in: each must fail a test, or be on the list with a reason.

`python tools/mutants.py` runs all, `python tools/mutants.py decision` those of modules with that name. Conditions are
negated, elements dropped, comparisons and constants swapped, one at a time, in the functions of the loaded module.
"""

import ast
import copy
import importlib
import inspect
import signal
import sys
import textwrap
import time
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

ROOT = Path(__file__).resolve().parent.parent
PROTECTION = [
    "tests/unit/catalog/protection/test_decision.py",
    "tests/unit/catalog/protection/test_ref_moves.py",
]
MODULES: dict[str, list[str]] = {
    "bergline.catalog.protection.ref_moves": PROTECTION,
    "bergline.catalog.protection.decision": PROTECTION,
    "bergline.catalog.protection.ref_change": [
        "tests/unit/catalog/protection/test_ref_change.py",
        "tests/unit/catalog/protection/test_table_rules_guard.py",
        "tests/unit/catalog/sql/rules/test_ref_guard.py",
    ],
    "bergline.server.access.granted_changes": ["tests/unit/server/access/test_granted_changes.py"],
    "bergline.server.access.granted_files": ["tests/unit/server/access/test_granted_files.py"],
    "bergline.server.access.named_files": [
        f"tests/unit/server/access/test_named_files.py::test_{name}"
        for name in (
            "data_files_that_are_named",
            "manifests_of_others_are_not_even_read",
            "what_the_table_named_before_is_named_again",
            "new_tables_name_files_where_they_come_to_lie",
            "what_registered_metadata_may_name",
            "what_names_no_file_is_not_looked_at",
            "manifests_of_parents_are_not_read_again",
            "what_commits_may_name",
            "list_that_cannot_be_read_is_refused",
        )
    ],
    "bergline.server.credentials.file_access": ["tests/unit/server/credentials/test_signable.py"],
    "bergline.server.credentials.signable": ["tests/unit/server/credentials/test_signable.py"],
    "bergline.catalog.table_locations": ["tests/unit/catalog/test_table_locations.py"],
}
"""The modules, each with the tests that must notice; the quickest first."""
_TYPES = "for the types alone: it is never None here"
_EITHER_WAY = "both ways of looking give the same moves, one is quicker"
_QUICKER = "a way around work that finds nothing"
_WITHOUT_GRANTS = "while there is no grant and no policy, everybody has each privilege"
_IDS = "no id has 20 digits"
_A_TARGET = "asked only where a head stands in, and what it is merged into is there"
_LOGGED = "what is logged, and how often"
LIVING: dict[str, str] = {
    "ref_moves._LONGEST_ID: 19 -> 20": _IDS,
    "ref_moves.RefMove.is_branch: ref is not None and ref.is_branch -> True and ref.is_branch": _TYPES,
    "ref_moves._Comparison._revives: bool(new) and "
    "(not new.isdisjoint((s.parent_snapshot_id for s in self._base.snapshots)))"
    " -> True and (not new.isdisjoint((s.parent_snapshot_id for s in self._base.snapshots)))": _EITHER_WAY,
    "ref_moves._Comparison._revives: bool(new) and "
    "(not new.isdisjoint((s.parent_snapshot_id for s in self._base.snapshots)))"
    " -> bool(new) and True": _EITHER_WAY,
    "ref_moves._Comparison._revives: bool(new) and "
    "(not new.isdisjoint((s.parent_snapshot_id for s in self._base.snapshots)))"
    " -> bool(new) or not new.isdisjoint((s.parent_snapshot_id for s in self._base.snapshots))": _EITHER_WAY,
    "ref_moves._Comparison._replays: own_ref is not None and _goes_on(own_ref, new_ref)"
    " -> True and _goes_on(own_ref, new_ref)": _TYPES,
    "ref_moves._Comparison._line: following is not None and following not in seen and (following in self._known)"
    " -> True and following not in seen and (following in self._known)": _TYPES,
    "decision._by_review: by.caller is None or move.kind not in _NEW_HEAD or move.after is None or "
    "(not (rule.checks or [...] -> by.caller is None or move.kind not in _NEW_HEAD or False or "
    "(not (rule.checks or rule.approvals))": _TYPES,
    "decision._by_review: 0 -> 1": "where no approval is demanded, none is missing",
    "ref_change.RefChange._review: snapshot_id in self._base.snapshots_by_id and snapshot_id not in self.lost_snapshots"
    " -> True and snapshot_id not in self.lost_snapshots": "reviews of what goes are void: none is on record",
    "ref_change.RefChange._review: is_seen or found is None -> is_seen or False": (
        "a catalog that keeps no record says so in the refusal, or only that there is none"
    ),
    "ref_change.RefChange._replays_truly: self._replay_check is None or self._result is None"
    " -> self._replay_check is None or False": _TYPES,
    "ref_change.RefChange._is_up_to_date: stand_in is None or move.before is None"
    " -> False or move.before is None": _A_TARGET,
    "ref_change.RefChange._is_up_to_date: stand_in is None or move.before is None"
    " -> stand_in is None or False": _A_TARGET,
    "ref_change.RefChange._is_up_to_date: stand_in is None or move.before is None"
    " -> stand_in is None and move.before is None": _A_TARGET,
    "ref_change.RefChange._is_up_to_date: stand_in is not None -> stand_in is None": _A_TARGET,
    "ref_change.RefChange._forbidden_rules: for level in levels if level.scope is TABLE -> for level in levels": (
        "no scope has a rule of the pattern of one of the table's own"
    ),
    "ref_change.RefChange._log: () if self._is_logged else bypassed"
    " -> () if not self._is_logged else bypassed": _LOGGED,
    "ref_change.RefChange._log: True -> False": _LOGGED,
    "granted_changes.GrantedChanges._missing_privileges: caller is None or not self._access.is_active"
    " -> caller is None or False": _WITHOUT_GRANTS,
    "granted_changes.GrantedChanges._is_replay: result is not None and self._replay_check(base, result, move)"
    " -> True and self._replay_check(base, result, move)": _TYPES,
    "granted_changes.needed_privileges: new is None and bool(known.keys() - result.snapshots_by_id.keys())"
    " -> True and bool(known.keys() - result.snapshots_by_id.keys())": _QUICKER,
    "named_files.NamedFiles._is_exempt: not self._access.is_active or "
    "self._access.may(*who, Privilege.ADMINISTER, CATALOG)"
    " -> False or self._access.may(*who, Privilege.ADMINISTER, CATALOG)": _WITHOUT_GRANTS,
    "named_files.NamedFiles._check_named: foreign and base is not None -> True and base is not None": _QUICKER,
    "named_files.NamedFiles._known_manifests: i is not None and i in known -> True and i in known": _TYPES,
    "signable._Directories.__init__: for found in parsed if found.key -> for found in parsed": (
        "what lies in the root of a bucket would begin with `/`, and no such key is signed"
    ),
    "signable._unknown: 200 -> 201": "how much of a text is shown",
    "signable._payload_hash: request.body or '' -> request.body or False": (
        "a body that says what is deleted was read before: it is not empty"
    ),
    "table_locations.remembering_former: not after.snapshots or "
    "not any((isinstance(update, _MOVING) for update in updates)) -> not after.snapshots or False": _QUICKER,
}
"""Mutants that no test can notice, as they are printed, each with the reason."""
SECONDS_OF_A_TEST = 20
"""Of the processor, so that a busy machine kills no mutant."""
SWAPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
}  # fmt: skip


class Mutant:
    """One change of a module's source."""

    def __init__(self, module: ModuleType, tree: ast.Module, place: list[str], texts: tuple[str, str]) -> None:
        self._module = module
        self._tree = tree
        self.text = f"{module.__name__.rsplit('.', 1)[-1]}.{'.'.join(place)}: {texts[0]} -> {texts[1]}"
        self._name = place[0]
        self._undo: list[tuple[Any, str, Any]] = []

    def apply(self) -> None:
        """Put its code into the functions of the loaded module, which others have imported."""
        scratch = ModuleType(self._module.__name__)
        scratch.__dict__["__file__"] = self._module.__file__
        code = compile(ast.fix_missing_locations(self._tree), str(self._module.__file__), "exec")
        sys.modules[scratch.__name__] = scratch
        try:
            exec(code, scratch.__dict__)  # noqa: S102
        finally:
            sys.modules[scratch.__name__] = self._module
        old, new = self._module.__dict__[self._name], scratch.__dict__[self._name]
        if isinstance(old, type) or callable(old):
            for mine, other in zip(_functions(old), _functions(new), strict=True):
                self._set(mine, "__code__", other.__code__)
                self._set(mine, "__defaults__", other.__defaults__)
                self._set(mine, "__kwdefaults__", other.__kwdefaults__)
        else:
            self._set(self._module, self._name, new)

    def undo(self) -> None:
        """Everything as it was."""
        for target, name, value in reversed(self._undo):
            setattr(target, name, value)
        self._undo.clear()

    def _set(self, target: Any, name: str, value: Any) -> None:
        self._undo.append((target, name, getattr(target, name)))
        setattr(target, name, value)


def _functions(found: Any) -> Iterator[FunctionType]:
    """The functions of a class or behind a decorator, in order."""
    if isinstance(found, type):
        for name, member in vars(found).items():
            if name.startswith("__") and name not in {"__init__", "__post_init__"}:
                continue
            yield from _functions(member)
    elif isinstance(found, property | cached_property | staticmethod | classmethod):
        inner = getattr(found, "fget", None) or getattr(found, "func", None) or getattr(found, "__func__", None)
        yield from _functions(inner)
    elif isinstance(found, FunctionType):
        yield inspect.unwrap(found)


def mutants_of(module: ModuleType) -> Iterator[Mutant]:
    """All mutants of a module."""
    tree = ast.parse(Path(str(module.__file__)).read_text())
    for top in range(len(tree.body)):
        name = _name_of(tree.body[top])
        if name is None:
            continue
        for number in range(sum(1 for _ in _sites(tree.body[top]))):
            changed = copy.deepcopy(tree)
            site, path = next(s for n, s in enumerate(_sites(changed.body[top])) if n == number)
            before = ast.unparse(site)
            for place in range(_ways(site)):
                again = copy.deepcopy(tree)
                target, _ = next(s for n, s in enumerate(_sites(again.body[top])) if n == number)
                _mutate(target, place)
                yield Mutant(module, again, [name, *path], (_short(before), _short(ast.unparse(target))))


def _name_of(node: ast.stmt) -> str | None:
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.AnnAssign(target=ast.Name(id=name)):
            return name
        case ast.Assign(targets=[ast.Name(id=name)]) if name.isupper():  # others are names of types
            return name
    return None


def _sites(node: ast.AST, path: tuple[str, ...] = ()) -> Iterator[tuple[ast.AST, tuple[str, ...]]]:
    """The nodes that can be changed, each with the functions that it is in; not what only describes types."""
    for field, value in ast.iter_fields(node):
        if field in {"annotation", "returns", "decorator_list", "msg"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.ClassDef) and not isinstance(child, ast.FunctionDef):
                continue  # what its instances are made of
            if isinstance(child, ast.AST) and not isinstance(child, ast.JoinedStr):
                inside = (*path, child.name) if isinstance(child, ast.FunctionDef) else path
                if _ways(child):
                    yield child, inside
                yield from _sites(child, inside)


def _ways(node: ast.AST) -> int:
    """In how many ways a node can be changed."""
    match node:
        case ast.BoolOp(values=values):
            return len(values) + 1
        case ast.Compare(ops=[_]) | ast.UnaryOp(op=ast.Not()) | ast.If() | ast.IfExp():
            return 1
        case ast.comprehension(ifs=ifs) if ifs:
            return len(ifs)
        case ast.Constant(value=value) if isinstance(value, bool | int):
            return 1
        case ast.Set(elts=elts) if len(elts) > 1:
            return len(elts)
        case ast.BinOp(op=ast.BitOr() | ast.Sub()):
            return 1
    return 0


def _mutate(node: ast.AST, way: int) -> None:
    match node:
        case ast.BoolOp(op=op, values=values) if way == len(values):
            node.op = ast.Or() if isinstance(op, ast.And) else ast.And()
        case ast.BoolOp(op=op, values=values):
            values[way] = ast.Constant(isinstance(op, ast.And))
        case ast.Compare(ops=[op]):
            node.ops = [SWAPPED[type(op)]()]
        case ast.UnaryOp():
            node.operand = ast.UnaryOp(ast.Not(), node.operand)
        case ast.If() | ast.IfExp():
            node.test = ast.UnaryOp(ast.Not(), node.test)
        case ast.comprehension(ifs=ifs):
            del ifs[way]
        case ast.Constant(value=bool(value)):
            node.value = not value
        case ast.Constant(value=int(value)):
            node.value = value + 1
        case ast.Set(elts=elts):
            del elts[way]
        case ast.BinOp(left=left):
            node.right = copy.deepcopy(left)


def _short(text: str) -> str:
    return textwrap.shorten(text.split("\n", 1)[0], 100)


class Hunt:
    """A plugin of pytest that runs the collected tests once for each mutant, until one fails."""

    def __init__(self, module: str) -> None:
        self._module = module
        self.living: list[str] = []
        self.count = 0
        self.failed: list[pytest.TestReport] = []

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Instead of running each test once."""
        if self._fails(session.items):
            raise SystemExit(f"the tests of {self._module} fail without a mutant: {self.failed[0].longreprtext}")
        for mutant in mutants_of(importlib.import_module(self._module)):
            self.count += 1
            mutant.apply()
            try:
                is_noticed = self._fails(session.items)
            finally:
                mutant.undo()
            if not is_noticed:
                self.living.append(mutant.text)
                _say(f"lives: {mutant.text}")
        return True

    def _fails(self, items: list[pytest.Item]) -> bool:
        for item, following in zip(items, [*items[1:], items[0]], strict=True):
            signal.setitimer(signal.ITIMER_PROF, SECONDS_OF_A_TEST)
            try:
                reports = runtestprotocol(item, log=False, nextitem=following)
            finally:
                signal.setitimer(signal.ITIMER_PROF, 0)
            self.failed = [report for report in reports if report.failed]
            if self.failed:
                item.session._setupstate.teardown_exact(items[0])  # noqa: SLF001
                return True
        return False


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _endless(*_: object) -> None:
    raise TimeoutError("a test did not end")


def main(names: list[str]) -> int:
    """How many mutants live that are not on the list, and how many of the list do not."""
    signal.signal(signal.SIGPROF, _endless)
    found: set[str] = set()
    asked = [m for m in MODULES if not names or m.rsplit(".", 1)[-1] in names]
    for module in asked:
        hunt, begun = Hunt(module), time.monotonic()
        pytest.main(["-q", "-m", "not server", "-p", "no:cacheprovider", "-s", *MODULES[module]], [hunt])
        found |= set(hunt.living)
        _say(f"{module}: {hunt.count} mutants, {len(hunt.living)} live, {time.monotonic() - begun:.0f} s")
    unknown = found - LIVING.keys()
    short = {module.rsplit(".", 1)[-1] for module in asked}
    gone = {text for text in LIVING if text.split(".")[0] in short} - found
    for text in sorted(gone):
        _say(f"no longer lives, take it off the list: {text}")
    return int(bool(unknown or gone))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
