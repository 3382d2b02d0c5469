"""Counts and durations of requests, and counts of clients' reports, in Prometheus' text format."""

import threading
from bisect import bisect_left

_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

_REPORTS = {"scan-report": "scan", "commit-report": "commit"}
_OTHER_REPORT = "other"


class Metrics:
    """Counters since the start."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[tuple[str, int], int] = {}
        self._durations: dict[str, list[int]] = {}
        self._sums: dict[str, float] = {}
        self._reports = dict.fromkeys((*_REPORTS.values(), _OTHER_REPORT), 0)

    def count(self, operation: str, status: int, seconds: float) -> None:
        """Count a response."""
        with self._lock:
            key = operation, status
            self._counts[key] = self._counts.get(key, 0) + 1
            buckets = self._durations.setdefault(operation, [0] * (len(_BOUNDS) + 1))
            buckets[bisect_left(_BOUNDS, seconds)] += 1
            self._sums[operation] = self._sums.get(operation, 0.0) + seconds

    def count_report(self, report_type: str) -> None:
        """Count a client's report; unknown types count together."""
        with self._lock:
            self._reports[_REPORTS.get(report_type.lower(), _OTHER_REPORT)] += 1

    def render(self, gauges: dict[str, int]) -> str:
        """The metrics as text, with counters that are kept elsewhere."""
        with self._lock:
            lines = ["# TYPE bergline_requests_total counter"]
            lines += [
                f'bergline_requests_total{{operation="{operation}",status="{status}"}} {number}'
                for (operation, status), number in sorted(self._counts.items())
            ]
            lines.append("# TYPE bergline_request_seconds histogram")
            for operation, buckets in sorted(self._durations.items()):
                lines += self._histogram(operation, buckets)
            lines.append("# TYPE bergline_client_reports_total counter")
            lines += [f'bergline_client_reports_total{{kind="{kind}"}} {n}' for kind, n in self._reports.items()]
        for name, number in gauges.items():
            lines += [f"# TYPE bergline_{name} counter", f"bergline_{name} {number}"]
        return "\n".join(lines) + "\n"

    def _histogram(self, operation: str, buckets: list[int]) -> list[str]:
        lines, total = [], 0
        for bound, number in zip((*map(str, _BOUNDS), "+Inf"), buckets, strict=True):
            total += number
            lines.append(f'bergline_request_seconds_bucket{{operation="{operation}",le="{bound}"}} {total}')
        lines.append(f'bergline_request_seconds_sum{{operation="{operation}"}} {self._sums[operation]:.6f}')
        lines.append(f'bergline_request_seconds_count{{operation="{operation}"}} {total}')
        return lines
