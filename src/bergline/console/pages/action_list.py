"""What may be done to a table."""

from bergline.console.actions.registry import ACTIONS
from bergline.console.links import name_text
from bergline.console.page import Page, PageQuery, Source, asked_table


def actions_page(source: Source, query: PageQuery) -> Page:
    """A link to the form of every action."""
    name = asked_table(query)
    offered = [action for action in ACTIONS.values() if source.at is None or not action.only_on_main]
    actions = [{"key": action.key, "title": action.title} for action in offered]
    values = {"table": str(name), "key": name_text(name), "actions": actions, "may_change": source.may_change}
    return Page(f"Actions on {name}", "actions.html", values)
