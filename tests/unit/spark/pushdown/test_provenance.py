import pytest

from bergline.spark.pushdown.provenance import unmarked

JOINED = """'Project ['nope]
+- Join Inner, (id#25 = id#27)
   :- SubqueryAlias lake.db.t
   :  +- SubqueryAlias `bergline read 70f67212 490 main`
   :     +- Project [id#18, s#19]
   :        +- Relation [id#16,s#17] parquet
   +- SubqueryAlias `bergline read 7ee561ab none a%20b`
      +- Union
         :- Relation [id#29] parquet
         +- Relation [id#31] parquet
"""
UNMARKED = """'Project ['nope]
+- Join Inner, (id#25 = id#27)
   :- SubqueryAlias lake.db.t
   :  +- Project [id#18, s#19]
   :     +- Relation [id#16,s#17] parquet
   +- Union
      :- Relation [id#29] parquet
      +- Relation [id#31] parquet
"""
LEFT = ":- SubqueryAlias `bergline read a 1 main`\n:  +- Project [id#1]\n:     +- Range\n+- Range"


@pytest.mark.parametrize(
    ("plan", "shown"),
    [
        (JOINED, UNMARKED),
        ("SubqueryAlias `bergline read a 1 main`\n+- Project [id#1]\n   +- Range", "Project [id#1]\n+- Range"),
        (LEFT, ":- Project [id#1]\n:  +- Range\n+- Range"),
        ("no plan: `bergline read`", "no plan: `bergline read`"),
    ],
)
def test_plans_in_errors_show_what_is_below_a_mark_in_its_place(plan: str, shown: str) -> None:
    assert unmarked(plan) == shown
