import re
from pathlib import Path

import bergline.console
from bergline.console.pages.registry import PAGES

CONSOLE = Path(bergline.console.__file__).parent
ON_THE_WEB = CONSOLE.parent / "server" / "console"


def test_every_template_is_used_and_has_nothing_inline() -> None:
    sources = "".join(path.read_text() for folder in (CONSOLE, ON_THE_WEB) for path in folder.rglob("*.py"))
    for template in (CONSOLE / "templates").glob("*.html"):
        text = template.read_text()
        assert f'"{template.name}"' in sources or template.name in {"base.html", "parts.html"}, template
        assert not re.search(r"<script|<style|\son\w+=|\sstyle=|\|\s*safe\b|https?://", text), template


def test_pages_of_a_table_are_below_it() -> None:
    assert all(path == "table" or path.startswith("table/") for path, entry in PAGES.items() if entry.tab)
