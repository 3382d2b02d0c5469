"""Writers in processes of their own, started once and given job after job; any of them may be killed."""

import contextlib
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

from support.paths import PROCESSES, python_path
from support.processes.writer_jobs import Journal, Note, Step

_PROGRAM = PROCESSES / "writer_process.py"
_KILL_EVERY_S = 0.25


class Writers:
    """Writers, numbered from 0, and as many more to take over from those that are killed."""

    def __init__(self, size: int) -> None:
        self.processes = [_Process() for _ in range(size)]
        self._spares: list[_Process] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in (*self.processes, *self._spares):
            process.close()

    def run(self, lake: dict[str, Any], directory: Path, plans: Sequence[Sequence[Step]], *, kills: int = 0) -> Journal:
        """Every writer carries out its plan, all at the same time.

        With `kills`, that many are killed at random moments; another goes on after the step that was begun last.
        """
        directory.mkdir(parents=True, exist_ok=True)
        journals = [directory / f"journal-{n}.jsonl" for n in range(len(plans))]
        # A kill may have come just after a writer's last step: nobody took over from it then.
        self.processes = [self._successor(w) if w.killed else w for w in self.processes]
        self._spares += [_Process() for _ in range(kills - len(self._spares))]
        for process in (*self.processes, *self._spares):
            process.wait_until_ready()
        started = time.perf_counter()
        with ThreadPoolExecutor(len(plans)) as threads:
            under_way = [
                threads.submit(self._carry_out, number, {"lake": lake, "journal": str(journals[number])}, plan)
                for number, plan in enumerate(plans)
            ]
            killed = self._kill(kills, under_way, journals)
        errors = [error for future in under_way for error in future.result()]
        seconds = time.perf_counter() - started
        return Journal([n for path in journals for n in _notes(path)], errors, sum(map(len, plans)), killed, seconds)

    def _carry_out(self, number: int, job: dict[str, Any], plan: Sequence[Step]) -> list[str]:
        """Until the plan is through; what went wrong."""
        while True:
            begun = {n.step["change"] for n in _notes(Path(job["journal"]))}
            answer = self.processes[number].ask({**job, "steps": [s for s in plan if s["change"] not in begun]})
            if answer is not None:
                return answer["errors"]
            self.processes[number] = self._successor(self.processes[number])

    def _successor(self, killed: "_Process") -> "_Process":
        killed.close()
        return self._spares.pop() if self._spares else _Process()

    def _kill(self, kills: int, under_way: Sequence[Future[list[str]]], journals: Sequence[Path]) -> int:
        """Kill writers that are in the middle of a step."""
        chance = random.SystemRandom()
        killed = 0
        while killed < kills and not all(future.done() for future in under_way):
            time.sleep(chance.uniform(0, 2 * _KILL_EVERY_S))
            busy = [
                n for n, journal in enumerate(journals) if [note.what for note in _notes(journal)][-1:] == ["begin"]
            ]
            if busy:
                self.processes[chance.choice(busy)].kill()
                killed += 1
        return killed


class _Process:
    """A writer as seen from outside."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(_PROGRAM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": python_path()},
        )
        self.pid = self._process.pid
        self.killed = False
        self._ready = False

    def wait_until_ready(self) -> None:
        if not self._ready:
            assert self._answer() == {"ready": True}
            self._ready = True

    def ask(self, job: dict[str, Any]) -> dict[str, Any] | None:
        """The answer; None if the process was killed."""
        assert self._process.stdin
        answer = None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(job) + "\n")
            self._process.stdin.flush()
            answer = self._answer()
        if answer is None and not self.killed:
            raise AssertionError(f"a writer that nobody killed ended with exit code {self._process.wait(timeout=60)}")
        return answer

    def kill(self) -> None:
        self.killed = True
        self._process.kill()

    def close(self) -> None:
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        self._process.wait(timeout=60)

    def _answer(self) -> dict[str, Any] | None:
        assert self._process.stdout
        line = self._process.stdout.readline()
        return json.loads(line) if line.endswith("\n") else None


def _notes(journal: Path) -> list[Note]:
    """What a writer noted; a line that was cut off was not noted."""
    if not journal.exists():
        return []
    return [Note(**json.loads(line)) for line in journal.read_text().splitlines(keepends=True) if line.endswith("\n")]
