"""The ids of plans that clients ask for again: each holds its request, so that any server on the catalog knows it."""

import secrets

import msgspec

from bergline.errors import NotFoundError
from bergline.format.encoding.integers import Long
from bergline.server.planning.tasks import PlanTask, packed, shortened, unpacked

LONGEST_PLAN_ID = 4096
"""What proxies let pass as part of a path."""
_MOST_BYTES = 128 * 1024
"""Of a request in an id: it is looked at in a thread of the server."""


class PlanRecipe(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """A scan to plan."""

    task: PlanTask
    rows: Long = 0
    """How many matching rows are enough; 0 for all."""
    salt: str = ""
    """Tells apart plans that were asked for twice."""


def new_plan_id(task: PlanTask, rows: int) -> str | None:
    """An id of its own for a plan; None if it would be longer than a path has room for."""
    plan_id = packed(PlanRecipe(task, rows, secrets.token_urlsafe(9)))
    return plan_id if _read(plan_id) is not None else None


def read_plan_id(text: str) -> PlanRecipe:
    """The plan of an id that a client sends back; NotFoundError for any other text."""
    recipe = _read(text)
    if recipe is None or recipe.rows < 0:
        raise unknown_plan(text)
    return recipe


def _read(text: str) -> PlanRecipe | None:
    return unpacked(text, PlanRecipe, _MOST_BYTES) if len(text) <= LONGEST_PLAN_ID else None


def unknown_plan(text: str) -> NotFoundError:
    """The error for a plan that does not exist, or no longer."""
    shown = shortened(text)
    return NotFoundError(f"no plan `{shown}` for this table", kind="plan", name=shown, hints=["plan the scan again"])
