"""Every order in which the file operations of several writers can fall, each order of the same effect once.

A writer is a function that asks its files for one thing after the other. It is run again and again on the answers it
had so far, up to the next question; what it asks for then is one step. No thread and no clock takes part.
"""

import io
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, combinations
from typing import Any, BinaryIO, NamedTuple

from bergline.errors import AlreadyExistsError, NotFoundError
from bergline.io.directories import Entries

Files = frozenset[tuple[str, bytes]]
Program = Callable[["Steps", "Log"], None]

MISSING, TAKEN, UNFINISHED = "missing", "taken", "unfinished"


class Call(NamedTuple):
    """What a writer wanted of the store, what it was told, and at which of its steps it began."""

    kind: str
    arguments: tuple[Any, ...]
    answer: Any
    first_step: int


class _Paused(BaseException):
    """The writer waits for its next step."""


class Steps:
    """FileIO and Directories that answer from a list, and then stop the writer."""

    def __init__(self, answers: Iterable[Any]) -> None:
        self._answers = list(answers)
        self.asked = 0
        self.question: tuple[Any, ...] | None = None

    def read(self, location: str, most: int | None = None) -> bytes:
        del most
        return self._found(self._ask("read", location), location)

    def open_input(self, location: str) -> BinaryIO:
        return io.BytesIO(self.read(location))

    def exists(self, location: str) -> bool:
        return self._ask("read", location) != MISSING

    def create(self, location: str, data: bytes) -> None:
        if self._ask("create", location, data) == TAKEN:
            raise AlreadyExistsError(location, kind="file", name=location)

    def delete(self, locations: Iterable[str]) -> list[str]:
        for location in locations:
            self._ask("delete", location)
        return []

    def entries(self, location: str) -> Entries | None:
        """A listing takes two steps, and what comes or goes between them may be in it or not."""
        before = self._ask("begin to list", location)
        return Entries([], sorted(self._ask("list", location, before)))

    def _ask(self, *question: Any) -> Any:
        if self.asked == len(self._answers):
            self.question = question
            raise _Paused
        self.asked += 1
        return self._answers[self.asked - 1]

    def _found(self, answer: Any, location: str) -> bytes:
        if answer == MISSING:
            raise NotFoundError(location, kind="file", name=location)
        return answer


class Log:
    """The calls of one writer."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self.calls: list[Call] = []

    def call(self, kind: str, arguments: tuple[Any, ...], function: Callable[[], Any]) -> Any:
        unfinished = Call(kind, arguments, UNFINISHED, self._steps.asked)
        self.calls.append(unfinished)
        answer = function()
        self.calls[-1] = unfinished._replace(answer=answer)
        return answer


class _Progress(NamedTuple):
    """How far a writer came on its answers; no question if it is at its end."""

    calls: tuple[Call, ...]
    question: tuple[Any, ...] | None


class Moment(NamedTuple):
    """The files, the calls of each writer so far, and which call ended before which began, as (writer, number)."""

    files: Files
    calls: tuple[tuple[Call, ...], ...]
    order: frozenset[tuple[tuple[int, int], tuple[int, int]]]


def moments(files: Files, programs: tuple[Program, ...], never_written: str) -> Iterator[Moment]:
    """Every moment that can come in any order of steps, from the given files on.

    What has `never_written` in its name no writer may create: when it is looked for makes no difference.
    """
    known: dict[tuple[int, tuple[Any, ...]], _Progress] = {}

    def progress(writer: int, answers: tuple[Any, ...]) -> _Progress:
        if (writer, answers) not in known:
            known[writer, answers] = _run(programs[writer], answers)
        return known[writer, answers]

    start = (files, ((),) * len(programs), frozenset())
    seen, waiting = {start}, [start]
    while waiting:
        now, answers, order = waiting.pop()
        states = [progress(writer, own) for writer, own in enumerate(answers)]
        yield Moment(now, tuple(state.calls for state in states), order)
        asking = [(writer, state) for writer, state in enumerate(states) if state.question]
        asking = [(w, s) for w, s in asking if s.question and never_written in s.question[1]][:1] or asking
        for writer, state in asking:
            assert state.question
            assert state.question[0] == "read" or never_written not in state.question[1]
            begun = order | _before(writer, states, len(answers[writer]))
            for answer, after in _outcomes(now, *state.question):
                own = (*answers[writer], answer)
                following = (after, (*answers[:writer], own, *answers[writer + 1 :]), begun)
                if following not in seen:
                    seen.add(following)
                    waiting.append(following)


def run_alone(files: Files, program: Program) -> tuple[Files, tuple[Call, ...]]:
    """What one writer does when nobody else is there."""
    answers: tuple[Any, ...] = ()
    while (state := _run(program, answers)).question:
        answer, files = next(_outcomes(files, *state.question))
        answers = (*answers, answer)
    return files, state.calls


def _run(program: Program, answers: tuple[Any, ...]) -> _Progress:
    steps = Steps(answers)
    log = Log(steps)
    try:
        program(steps, log)
    except _Paused:
        return _Progress(tuple(log.calls), steps.question)
    return _Progress(tuple(log.calls), None)


def _before(writer: int, states: list[_Progress], step: int) -> set[tuple[tuple[int, int], tuple[int, int]]]:
    """If a step is the first of a call: what had ended by then."""
    number = len(states[writer].calls) - 1
    if number < 0 or states[writer].calls[number].first_step != step:
        return set()
    return {
        ((other, n), (writer, number))
        for other, state in enumerate(states)
        for n, call in enumerate(state.calls)
        if call.answer != UNFINISHED
    }


def _outcomes(files: Files, kind: str, location: str, *more: Any) -> Iterator[tuple[Any, Files]]:
    """What a step may answer, and the files after it."""
    found = dict(files)
    match kind:
        case "read":
            yield found.get(location, MISSING), files
        case "create" if location in found:
            yield TAKEN, files
        case "create":
            yield True, files | {(location, more[0])}
        case "delete":
            yield True, frozenset(item for item in files if item[0] != location)
        case "begin to list":
            yield _names(files, location), files
        case "list":
            now = _names(files, location)
            unsure = now ^ more[0]
            for some in chain.from_iterable(combinations(sorted(unsure), n) for n in range(len(unsure) + 1)):
                yield (now & more[0]) | set(some), files


def _names(files: Files, directory: str) -> frozenset[str]:
    return frozenset(location.rpartition("/")[2] for location, _ in files if location.rpartition("/")[0] == directory)
