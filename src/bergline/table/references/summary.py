"""Summary entries as callers give them: without those that merges, picks and publishing go by."""

from typing import Any, Final

from bergline.arguments import check_texts
from bergline.errors import InvalidInputError
from bergline.table.references.common_ancestor import ORIGIN, SOURCE, SQUASHED, SQUASHED_SINCE
from bergline.table.references.snapshot_change import REPLACED, REPLACED_AMONG_OTHERS
from bergline.table.references.staged import PUBLISHED_WAP_ID, WAP_ID

_OWN: Final = frozenset(
    {SOURCE, ORIGIN, SQUASHED, SQUASHED_SINCE, WAP_ID, PUBLISHED_WAP_ID, REPLACED, REPLACED_AMONG_OTHERS}
)


def check_summary(given: Any) -> dict[str, str]:
    """The entries; InvalidInputError for those that say what a snapshot repeats: rows would be left out of merges."""
    summary = {} if given is None else check_texts(given, "summary entry")
    if taken := sorted(_OWN & summary.keys()):
        hints = ["`wap_id` stages a write"] if WAP_ID in taken else []
        raise InvalidInputError(
            f"expected summary entries of your own, found `{taken[0]}`, which bergline writes itself", hints=hints
        )
    return summary
