"""A procedure of `CALL system.…`: its parameters in order, and the function that it runs."""

from collections.abc import Callable

import msgspec
import pyarrow as pa


class Parameter(msgspec.Struct, frozen=True):
    """One argument of a procedure."""

    name: str
    type: str
    required: bool = False


class Procedure(msgspec.Struct, frozen=True):
    """What CALL runs; `run` gets the table and the other arguments by name."""

    parameters: tuple[Parameter, ...]
    run: Callable[..., pa.Table]
    makes_table: bool = False
    """Whether it creates the table: `run` gets the lake and the name instead."""
    of_lake: bool = False
    """Whether it is about the tables of a lake: `run` gets the lake, and the name of a table only if one is given."""
    needs_engine: bool = False
    """Whether it works with rows or asks the session: `run` gets the engine's context as `engine`."""
    on_branch: bool = False
    """Whether the table's name may name a branch (`db.orders.branch_x`), which `run` gets as `branch`."""
    moves_refs: bool = False
    """Whether it moves a branch: pipelines refuse it, because that would stay if an audit fails."""


TABLE = Parameter("table", "string", required=True)
