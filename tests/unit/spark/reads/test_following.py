"""Names of tables that frames follow, without Spark."""

from bergline import Lake, Table
from bergline.spark.reads.following import FollowedName, QueryStates
from support.fixtures.rows import order_rows


def test_a_name_is_that_of_one_ref_of_the_lake(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1)).refs.create_branch("staging")
    staging = [FollowedName(lake.at("staging").load_table("db.orders")) for _ in range(2)]
    main = [FollowedName(one.load_table("db.orders")) for one in (lake, lake.at("main"))]
    assert staging[0] == staging[1]
    assert main[0] == main[1]
    assert main[0] != staging[0]
    lake.at("staging").load_table("db.orders").append(order_rows(2))
    states = QueryStates()
    for name, ref in ((main[0], "main"), (staging[0], "staging"), (main[1], "main"), (staging[1], "staging")):
        seen = states.find("a query", name, 0.0, lambda _: True)
        assert seen.metadata.current_snapshot_id == orders.refresh().refs[ref].snapshot_id
