"""Pages as HTML: Jinja2 with everything escaped, and the names that all templates have."""

import datetime as dt
from functools import partial
from pathlib import Path
from typing import Any

import jinja2
import msgspec

from bergline.catalog.at_ref.lake_ref import LakeRef
from bergline.console.graph import graph_markup
from bergline.console.links import link, links_at
from bergline.console.page import Page
from bergline.reports.units import render_age, render_size

_TEMPLATES = Path(__file__).parent / "templates"
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class Tab(msgspec.Struct, frozen=True):
    """A link to another page of the same table."""

    label: str
    link: str
    current: bool


class Frame(msgspec.Struct, frozen=True):
    """What stands around a page: the template's `console`."""

    lake: str
    path: str = ""
    caller: str = ""
    signed_in: bool = False
    may_change: bool = False
    csrf: str = ""
    tabs: tuple[Tab, ...] = ()
    twin: str | None = None
    """The address of the `.json` twin."""
    now_ms: int = 0
    at: LakeRef | None = None
    """The ref of the lake at which the page is; None for `main`."""
    is_at_all_refs: bool = False
    """Whether the page is the same at all refs."""
    here: str = "/"
    """The address of the page on `main`."""
    branches: tuple[str, ...] = ()
    """Branches of the lake that are offered."""


class Renderer:
    """Renders pages; templates are compiled once."""

    def __init__(self) -> None:
        self._environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader(_TEMPLATES),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters |= {
            "size": size,
            "number": number,
            "moment": moment,
            "age": age,
            "tojson_text": json_text,
        }

    def html(self, page: Page, frame: Frame) -> str:
        """A page as a whole document."""
        template = self._environment.get_template(page.template)
        links = links_at(frame.at)
        names = {"link": links, "main_link": link, "graph": partial(graph_markup, link=links)}
        return template.render({**page.values, **names, "title": page.title, "console": frame})


def size(value: int | None) -> str:
    """A number of bytes for people."""
    return "" if value is None else render_size(value)


def number(value: int | None) -> str:
    """A count with separators."""
    return "" if value is None else f"{value:,}"


def moment(milliseconds: int | None) -> str:
    """A time in UTC, to the second."""
    if milliseconds is None:
        return ""
    try:
        return (_EPOCH + dt.timedelta(milliseconds=milliseconds)).strftime("%Y-%m-%d %H:%M:%S UTC")
    except OverflowError:
        return f"{milliseconds} ms"


def age(milliseconds: int | None, now_ms: int) -> str:
    """How long ago a time was."""
    return "" if milliseconds is None else render_age(milliseconds, now_ms)


def json_text(value: Any) -> str:
    """A nested value as text, which is escaped like any other."""
    return msgspec.json.encode(value).decode()


def json_bytes(values: Any) -> bytes:
    """The `.json` twin of a page."""
    return msgspec.json.encode(values)
