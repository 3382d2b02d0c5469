"""What axe-core finds in a page."""

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

_SERIOUS = {"serious", "critical"}


def check_accessible(page: Page, where: str) -> None:
    """No serious finding in the page as it is shown."""
    found = Axe().run(page).response
    serious = [(v["id"], v["nodes"][0]["html"][:200]) for v in found["violations"] if v["impact"] in _SERIOUS]
    assert serious == [], where
    assert found["passes"], where
