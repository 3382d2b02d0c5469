"""Names in addresses."""

import pytest

from bergline.catalog.rest.protocol.names import (
    decode_name,
    decode_namespace,
    decode_separator,
    encode_name,
    encode_namespace,
    encode_separator,
    split_levels,
)
from bergline.errors import InvalidInputError

AWKWARD = ["a", "a b", "a+b", "a/b", "a%2Fb", "a.b", "..", "ä€😀", "a?b#c", "%", "a&b=c"]


@pytest.mark.parametrize("name", AWKWARD)
def test_any_name_comes_back_from_a_path(name: str) -> None:
    segment = encode_name(name)
    assert "/" not in segment
    assert decode_name(segment) == name


@pytest.mark.parametrize("separator", ["\x1f", "|", "::"])
def test_namespaces_come_back_with_any_separator(separator: str) -> None:
    namespace = tuple(AWKWARD)
    assert decode_namespace(encode_namespace(namespace, separator), separator) == namespace


def test_unit_separator_counts_beside_the_servers_own() -> None:
    assert decode_namespace("a%1Fb%2Ec", ".") == ("a", "b", "c")
    assert decode_namespace("a%1fb.c") == ("a", "b.c")
    assert split_levels("a\x1fb|c", "|") == ("a", "b", "c")


def test_blank_of_javas_clients_is_a_blank() -> None:
    assert decode_name("my+table%2B1") == "my table+1"


def test_level_with_the_separator_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"without '\|', found 'a\|b'"):
        encode_namespace(("a|b",), "|")


@pytest.mark.parametrize("segment", ["%FF", "a%C3"])
def test_bytes_that_are_not_utf8_are_refused(segment: str) -> None:
    with pytest.raises(InvalidInputError, match="percent-encoded UTF-8"):
        decode_name(segment)


@pytest.mark.parametrize("separator", ["\x1f", ".", "+", "::", "€"])
def test_separators_come_back_from_the_configuration(separator: str) -> None:
    assert decode_separator(encode_separator(separator)) == separator
    assert decode_separator(separator) == separator


def test_lone_surrogates_and_empty_separators_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="lone surrogates"):
        encode_name("\ud800")
    with pytest.raises(InvalidInputError, match="separator"):
        decode_separator("")
