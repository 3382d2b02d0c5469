"""Takes the pictures of the documentation: a table in a notebook, and pages of the console, in Chromium.

Usage: python tools/pictures.py [--to DIRECTORY] [name …], by default all, to docs/images. The console is that of
`bergline serve` over the lake of `bergline quickstart`. Chromium is the machine's own, or the one that CHROMIUM names.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from playwright.sync_api import sync_playwright

import bergline

IMAGES = Path(__file__).parents[1] / "docs" / "images"
WIDTH = 1080


class Picture(NamedTuple):
    """A page of the console, by its address below the server's."""

    path: str
    height: int
    dark: bool = False


CONSOLE = {
    "console-lake-dark": Picture("/", 420, dark=True),
    "console-table": Picture("/table?name=shop.orders", 720),
    "console-difference": Picture("/table/difference?name=shop.orders&from=main&to=experiment", 720),
}
NOTEBOOK = "notebook"


def main() -> int:
    """Take the pictures that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, default=IMAGES, help="where they go")
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join([NOTEBOOK, *CONSOLE])}")
    given = parser.parse_args()
    unknown = set(given.names) - {NOTEBOOK, *CONSOLE}
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if unknown or chromium is None:
        parser.error(f"no picture {', '.join(sorted(unknown))}" if unknown else "needs chromium, found none")
    wanted = given.names or [NOTEBOOK, *CONSOLE]
    with (
        tempfile.TemporaryDirectory() as directory,
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"]) as browser,
    ):
        if NOTEBOOK in wanted:
            page = browser.new_page(viewport={"width": 800, "height": 100})
            page.set_content(
                f'<body style="font:14px sans-serif;background:#fff">{table_in_notebook(directory)}</body>'
            )
            page.screenshot(path=given.to / f"{NOTEBOOK}.png", full_page=True)
        console = {name: picture for name, picture in CONSOLE.items() if name in wanted}
        if console:
            with served(Path(directory)) as url:
                for name, (path, height, dark) in console.items():
                    scheme: Any = "dark" if dark else "light"
                    page = browser.new_page(color_scheme=scheme, viewport={"width": WIDTH, "height": height})
                    response = page.goto(url + path)
                    if response is None or not response.ok:
                        sys.stderr.write(f"{path}: {response and response.status}\n")
                        return 1
                    page.screenshot(path=given.to / f"{name}.png")
    return 0


def table_in_notebook(directory: str) -> str:
    """What a notebook shows of a table with some history."""
    columns = pa.schema([("id", pa.int64()), ("region", pa.string()), ("amount", pa.float64())])
    with bergline.connect(f"sqlite:///{directory}/notebook/catalog.db", create=True) as lake:
        lake.create_namespace("shop")
        orders = lake.create_table(
            "shop.orders", columns, partition_by=["region"], location=f"{directory}/s3/bucket/shop/orders"
        )
        orders.append([{"id": 1, "region": "eu", "amount": 10.0}, {"id": 2, "region": "us", "amount": 20.0}])
        orders.refs.create_tag("monday")
        orders.append([{"id": 3, "region": "us", "amount": -9.0}], branch="audit")
        orders.append([{"id": 4, "region": "eu", "amount": 40.0}])
        orders.delete("amount < 0", branch="audit")
        orders.refs.merge("audit", into="main")
        orders.append([{"id": 5, "region": "eu", "amount": 50.0}], branch="experiment")
        orders.refs.create_tag("tuesday")
        shown: str = orders._repr_html_()
        return shown.replace(f"file://{directory}/s3/", "s3://")


@contextmanager
def served(directory: Path) -> Iterator[str]:
    """The address of `bergline serve` over the lake of `bergline quickstart`."""
    command = str(Path(sys.executable).with_name("bergline"))
    lake = directory / "quickstart"
    subprocess.run([command, "quickstart", str(lake)], check=True, capture_output=True)  # noqa: S603  (our own)
    serve = [command, "serve", "--catalog", f"sqlite:///{lake}/catalog.db", "--port", "0"]
    with subprocess.Popen(serve, stderr=subprocess.PIPE, text=True) as server:  # noqa: S603
        try:
            assert server.stderr is not None  # noqa: S101  (a pipe was asked for)
            yield next(found[1] for line in server.stderr if (found := re.search(r" at (http://\S+)$", line.rstrip())))
        finally:
            server.terminate()


if __name__ == "__main__":
    sys.exit(main())
