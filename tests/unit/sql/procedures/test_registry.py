"""The registry of procedures: each takes what it declares, and says whether it moves refs."""

import inspect

import pytest

from bergline.sql.procedures.procedure import TABLE, Parameter
from bergline.sql.procedures.registry import PROCEDURES


@pytest.mark.parametrize("name", PROCEDURES)
def test_procedure_takes_the_arguments_that_it_declares(name: str) -> None:
    procedure = PROCEDURES[name]
    first, *taken = inspect.signature(procedure.run).parameters.values()
    declared = procedure.parameters
    if procedure.of_lake:
        assert first.name == "lake"
        assert declared[0] == Parameter("table", "string")
    else:
        assert TABLE in declared
        declared = tuple(p for p in declared if p != TABLE)
    if procedure.makes_table:
        assert first.name == "lake"
        taken = taken[1:]
    if procedure.needs_engine:
        assert "engine" in [p.name for p in taken]
        taken = [p for p in taken if p.name != "engine"]
    if procedure.on_branch:
        assert "branch" in [p.name for p in declared]
    assert {p.name: p.default is inspect.Parameter.empty for p in taken} == {p.name: p.required for p in declared}


def test_procedures_that_move_refs_say_so() -> None:
    assert {name for name, procedure in PROCEDURES.items() if procedure.moves_refs} == {
        "cherrypick_snapshot",
        "fast_forward",
        "merge",
        "publish_changes",
        "rebase",
        "rollback_to_snapshot",
        "rollback_to_timestamp",
        "set_current_snapshot",
    }
