"""The graph in a template."""

from bergline import Table
from bergline.console.graph import graph_markup
from bergline.console.pages.values import plain
from bergline.reports.graph import render_graph
from bergline.reports.history import table_history
from support.fixtures.rows import order_rows


def test_the_graph_is_the_same_from_the_values_of_a_page(orders: Table) -> None:
    orders.append(order_rows(1)).append(order_rows(2))
    orders.refs.create_tag('v"1')
    history = table_history(orders.metadata)
    expected = render_graph(history, link=lambda i: f"/table/snapshot?name=db.orders&id={i}", label="History")
    assert str(graph_markup(plain(history), "db.orders", "History")) == expected
