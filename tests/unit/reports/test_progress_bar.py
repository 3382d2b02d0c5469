"""Progress in notebooks, by a real IPython."""

import datetime as dt

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import RichOutput, capture_output

from bergline import ProgressBar, Table
from support.fixtures.rows import order_rows


@pytest.fixture
def shell() -> InteractiveShell:
    """What a notebook runs cells in."""
    return InteractiveShell.instance()


def cell(shell: InteractiveShell, text: str, **names: object) -> list[RichOutput]:
    """What a cell displays."""
    shell.user_ns.update(names)
    with capture_output() as shown:
        shell.run_cell(text).raise_error()
    return list(shown.outputs)


def test_bar_is_shown_once_and_updated_to_its_end(shell: InteractiveShell, orders: Table) -> None:
    for number in range(4):
        orders.append(order_rows(number))
    text = "orders.expire(older_than=dt.datetime(2999, 1, 1, tzinfo=dt.UTC), retain_last=1, progress=bar)"
    first, *later = cell(shell, text, dt=dt, orders=orders, bar=ProgressBar("<expire>"))
    assert "<progress max=" in first.data["text/html"]
    assert "&lt;expire&gt;" in first.data["text/html"]
    last = [first, *later][-1].data["text/html"]
    assert 'value="' in last
    done, _, total = last.partition("</progress> ")[2].partition(" of ")
    assert done == total.partition(",")[0].partition("<")[0]


def test_every_kind_of_progress_is_understood() -> None:
    bar = ProgressBar("tables")
    bar("the report of a table", 2, 8)
    assert repr(bar).startswith("tables 2 of 8")
    bar(8, 8)
    assert repr(bar).startswith("tables 8 of 8")


def test_nothing_is_displayed_outside_of_a_notebook(capsys: pytest.CaptureFixture[str]) -> None:
    InteractiveShell.clear_instance()
    bar = ProgressBar("quiet")
    bar(1, 1)
    assert capsys.readouterr() == ("", "")
