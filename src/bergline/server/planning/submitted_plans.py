"""Plans that clients were told to ask for again: each for its caller alone, kept for minutes and in bounded memory."""

import threading
import time
from collections import OrderedDict

from bergline.server.planning.worker_pool import RunningPlan

_LIFETIME_S = 300.0
_MOST_BYTES = 64 * 2**20
_MOST = 2000

_Key = tuple[str, str]


class SubmittedPlans:
    """Plans by caller and id; what is forgotten is planned again when it is asked for."""

    def __init__(self, *, lifetime_s: float = _LIFETIME_S, most_bytes: int = _MOST_BYTES, most: int = _MOST) -> None:
        self._lifetime_s = lifetime_s
        self._most_bytes = most_bytes
        self._most = most
        self._plans: OrderedDict[_Key, tuple[RunningPlan | None, float]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        with self._lock:
            return len(self._plans)

    def find(self, principal: str, plan_id: str) -> RunningPlan | None:
        """The plan; None if it is not known here."""
        with self._lock:
            self._tidy()
            return self._plans.get((principal, plan_id), (None, 0.0))[0]

    def was_cancelled(self, principal: str, plan_id: str) -> bool:
        """Whether the caller cancelled the plan here."""
        with self._lock:
            found = self._plans.get((principal, plan_id))
            return found is not None and found[0] is None

    def keep(self, plan_id: str, plan: RunningPlan) -> RunningPlan:
        """Keep a plan; the one that is kept already if the caller has asked twice."""
        with self._lock:
            known = self._plans.setdefault((plan.principal, plan_id), (plan, time.monotonic() + self._lifetime_s))[0]
            self._tidy()
            return known or plan

    def cancel(self, principal: str, plan_id: str) -> RunningPlan | None:
        """Forget a plan but for that it was cancelled; the plan, for the work to be given up, if it is known here."""
        with self._lock:
            if (principal, plan_id) not in self._plans:  # Java cancels every plan, also those that were there at once
                return None
            plan, _ = self._plans.pop((principal, plan_id))
            self._plans[principal, plan_id] = None, time.monotonic() + self._lifetime_s
            self._tidy()
            return plan

    def _tidy(self) -> None:
        """Forget what is over and old, then the oldest results beyond the limits."""
        now, sizes = time.monotonic(), {key: _size(plan) for key, (plan, _) in self._plans.items()}
        total, number = sum(size or 0 for size in sizes.values()), len(sizes)
        for key, size in sizes.items():
            is_old = self._plans[key][1] < now
            if size is not None and (is_old or number > self._most or (size and total > self._most_bytes)):
                del self._plans[key]
                total, number = total - size, number - 1


def _size(plan: RunningPlan | None) -> int | None:
    """The bytes of a result; None for a plan that is under way."""
    if plan is None:
        return 0
    if not plan.response.done():
        return None
    return 0 if plan.response.exception() else len(plan.response.result())
