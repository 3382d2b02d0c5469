"""Iceberg's planning modes."""

import pytest

from bergline.errors import InvalidInputError
from bergline.table.scans.planning_mode import DATA_MODE, PlanningMode, check_planning_mode


@pytest.mark.parametrize("text", ["distributed", "DISTRIBUTED", "Distributed"])
def test_modes_are_known_in_any_case(text: str) -> None:
    assert check_planning_mode(DATA_MODE, text) is PlanningMode.DISTRIBUTED


@pytest.mark.parametrize("text", ["", "remote", "auto "])
def test_other_modes_are_refused_with_the_name_of_the_setting(text: str) -> None:
    expected = rf"expected auto, local, distributed for `read\.data-planning-mode`, found `{text}`"
    with pytest.raises(InvalidInputError, match=expected):
        check_planning_mode(DATA_MODE, text)
