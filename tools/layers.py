"""Write the layers into ARCHITECTURE.md, as import-linter checks them by pyproject.toml.

`python tools/layers.py` writes the block; a test compares it with what `render()` returns.
"""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "ARCHITECTURE.md"
COMMAND = "python tools/layers.py"
_BLOCK = re.compile(r"(?<=<!-- layers -->\n```text\n).*?(?=```\n)", re.DOTALL)


def render() -> str:
    """A line for the packages and one for the inside of each: every name imports only what stands to its right."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    rows: dict[str, list[str]] = {}
    for contract in settings["tool"]["importlinter"]["contracts"]:
        if contract["type"] == "layers":
            (container,) = contract.get("containers", ["bergline"])
            rows[container] = [layer.replace("bergline.", "") for layer in contract["layers"]]
    width = max(len(name) for name in rows) - len("bergline") + 1
    return "".join(f"{_short(name):{width}} {' → '.join(layers)}\n" for name, layers in rows.items())


def current() -> str:
    """What the page has."""
    found = _BLOCK.search(PAGE.read_text())
    return found[0] if found else ""


def _short(container: str) -> str:
    return container.removeprefix("bergline").removeprefix(".").replace(".", "/") + "/"


if __name__ == "__main__":
    PAGE.write_text(_BLOCK.sub(lambda _: render(), PAGE.read_text()))
