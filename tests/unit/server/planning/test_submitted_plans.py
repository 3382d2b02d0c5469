"""Submitted plans: whose they are, and for how long."""

from bergline.server.planning.submitted_plans import SubmittedPlans
from bergline.server.planning.worker_messages import PlanStopped
from bergline.server.planning.worker_pool import RunningPlan


def done(principal: str, size: int = 10) -> RunningPlan:
    plan = RunningPlan(principal, b"")
    plan.finish(b"x" * size)
    return plan


def test_plan_is_found_by_its_caller_alone() -> None:
    plans, plan = SubmittedPlans(), RunningPlan("ann", b"")
    assert plans.keep("p", plan) is plan
    assert plans.find("ann", "p") is plan
    assert plans.find("bob", "p") is None
    assert plans.cancel("bob", "p") is None
    assert not plans.was_cancelled("ann", "p")


def test_plan_that_is_asked_for_twice_is_kept_once() -> None:
    plans, plan = SubmittedPlans(), RunningPlan("ann", b"")
    plans.keep("p", plan)
    assert plans.keep("p", RunningPlan("ann", b"")) is plan


def test_cancelled_plan_takes_no_memory_and_is_remembered() -> None:
    plans, plan = SubmittedPlans(), done("ann")
    plans.keep("p", plan)
    assert plans.cancel("ann", "p") is plan
    assert plans.find("ann", "p") is None
    assert plans.was_cancelled("ann", "p")


def test_results_are_forgotten_after_their_time_but_not_plans_under_way() -> None:
    plans = SubmittedPlans(lifetime_s=-1)
    under_way = RunningPlan("ann", b"")
    plans.keep("a", under_way)
    plans.keep("b", done("ann"))
    failed = RunningPlan("ann", b"")
    failed.finish(None, PlanStopped())
    plans.keep("c", failed)
    assert plans.find("ann", "a") is under_way
    assert len(plans) == 1


def test_oldest_results_go_first_where_there_are_too_many_or_too_large_ones() -> None:
    plans = SubmittedPlans(most_bytes=25, most=3)
    kept = [plans.keep(f"p{number}", done("ann")) for number in range(3)]
    assert [plans.find("ann", f"p{number}") for number in range(3)] == [None, kept[1], kept[2]]
    for number in range(3, 6):
        plans.keep(f"p{number}", done("ann", 0))
        plans.cancel("ann", f"p{number}")
    assert len(plans) == 3
    assert plans.was_cancelled("ann", "p5")


def test_plan_that_was_never_kept_leaves_nothing_when_it_is_cancelled() -> None:
    plans = SubmittedPlans()
    assert plans.cancel("ann", "p") is None
    assert not plans.was_cancelled("ann", "p")
    assert len(plans) == 0
