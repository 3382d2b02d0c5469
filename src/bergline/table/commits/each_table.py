"""Several tables of which all must be able, and one error that has the reasons of all that are not."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from bergline.catalog.identifiers import TableName
from bergline.errors import BerglineError, CommitUnknownError, TablesRefusedError, UnavailableError

_Result = TypeVar("_Result")


def each_table(names: Sequence[TableName], run: Callable[[TableName], _Result], refusal: str | None) -> list[_Result]:
    """What `run` gives for every table; what it raises for one is raised at once, unless there is a refusal.

    With one, all tables are gone through, and those that cannot are a TablesRefusedError that begins with it. A store
    that does not answer says nothing about a table: that is raised at once in any case.
    """
    results: list[_Result] = []
    reasons: dict[str, BerglineError] = {}
    for name in names:
        try:
            results.append(run(name))
        except (UnavailableError, CommitUnknownError):
            raise
        except BerglineError as error:
            if refusal is None:
                raise
            reasons[str(name)] = error
    if reasons:
        raise TablesRefusedError(
            f"{refusal}: {len(reasons)} of {len(names)} tables cannot, and none was changed", reasons=reasons
        )
    return results
