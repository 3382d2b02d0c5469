from bergline.console.actions.registry import ACTIONS
from bergline.console.page import Source
from bergline.console.pages.action_list import actions_page


def test_every_action_is_listed(source: Source) -> None:
    found = actions_page(source, {"name": "db.orders"}).values
    assert [action["key"] for action in found["actions"]] == list(ACTIONS)
    assert found["may_change"] is True
