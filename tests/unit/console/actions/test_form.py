import pytest

from bergline.console.actions.form import Answers, Field, age_text
from bergline.errors import InvalidInputError

FIELDS = (Field("a", "An answer"), Field("b", "A box", "check"))


@pytest.mark.parametrize(
    ("text", "ms"), [("7 d", 604_800_000), ("12h", 43_200_000), ("30 min", 1_800_000), ("5 ms", 5), ("", None)]
)
def test_time_span_is_read_and_shown_alike(text: str, ms: int | None) -> None:
    assert Answers(FIELDS, {"a": text}).age_ms("a") == ms
    assert Answers(FIELDS, {"a": age_text(ms)}).age_ms("a") == ms


@pytest.mark.parametrize("text", ["0 d", "d", "7", "-1 d", "1e3 d", "7 d d"])
def test_what_is_no_time_span_is_refused_by_label(text: str) -> None:
    with pytest.raises(InvalidInputError, match="for `An answer`, found"):
        Answers(FIELDS, {"a": text}).age_ms("a")


@pytest.mark.parametrize("text", ["0", "x", "1.5", "9" * 19, "9" * 40, "１"])  # noqa: RUF001
def test_what_is_no_number_is_refused_by_label(text: str) -> None:
    with pytest.raises(InvalidInputError, match="whole number from 1 on for `An answer`"):
        Answers(FIELDS, {"a": text}).number("a")


def test_snapshot_is_an_id_or_a_ref() -> None:
    assert [Answers(FIELDS, {"a": t}).snapshot("a") for t in ("17", " v1 ", "")] == [17, "v1", None]


def test_only_the_fields_of_the_form_are_answers() -> None:
    assert Answers(FIELDS, {"a": " x ", "csrf": "y"}).values() == {"a": "x", "b": ""}
