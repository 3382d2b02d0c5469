import pytest

from bergline.catalog.at_ref.lake_ref import LakeRef, LakeRefKind
from bergline.catalog.identifiers import TableName
from bergline.console.links import link, links_at, name_text, parse_name
from bergline.errors import InvalidInputError


@pytest.mark.parametrize(
    "name",
    [
        TableName(("db",), "orders"),
        TableName(("a", "b"), "t"),
        TableName(("a.b",), "t.u"),
        TableName(("<b>",), "&name=x#/?"),
    ],
)
def test_name_in_an_address_is_found_again(name: TableName) -> None:
    assert parse_name(name_text(name)) == name


def test_link_escapes_everything_and_leaves_out_what_is_none() -> None:
    assert link("") == "/"
    assert link("table/rows", "db.a&b", ref="x y", snapshot=None) == "/table/rows?name=db.a%26b&ref=x+y"


def test_links_at_a_ref_begin_with_it() -> None:
    links = links_at(LakeRef(LakeRefKind.BRANCH, "a/b"))
    assert links("") == "/branch.a~2Fb/"
    assert links("table/rows", "db.orders", ref="x") == "/branch.a~2Fb/table/rows?name=db.orders&ref=x"
    assert links_at(None) is link


def test_name_without_namespace_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="table name like"):
        parse_name("orders")
