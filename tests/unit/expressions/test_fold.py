"""The fold over bound predicates."""

from bergline.expressions.fold import fold
from bergline.expressions.predicate import UNKNOWN, And, Comparison, IsNull, Not, Or


def test_negation_is_pushed_to_the_leaves() -> None:
    predicate = Not(And(Or(Comparison("a", "<", 1), Not(IsNull("b"))), Not(UNKNOWN)))
    text = fold(
        predicate,
        constant=str,
        leaf=lambda leaf, negated: f"{'not ' * negated}{leaf}",
        both=lambda left, right: f"({left} and {right})",
        either=lambda left, right: f"({left} or {right})",
    )
    assert text == "((Comparison(column='a', operator='>=', literal=1) and IsNull(column='b')) or None)"
