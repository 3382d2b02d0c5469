"""Errors of Spark about queries on lake tables, with the names and the text that the user wrote.

Spark is sent a text in which frames take the place of tables, under names that tell which query it is. PySpark makes
every exception of Java a Python one in a single function, where `attach` lets this module look. Class, condition and
SQLSTATE stay what they are.
"""

import re
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import msgspec
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkContext
from pyspark.errors.exceptions.captured import CapturedException, SQLQueryContext
from pyspark.sql import DataFrame, SparkSession

from bergline.sql.queries.rewritten import RewrittenQuery

_REMEMBERED = 2000
_NAME = re.compile(r"bergline_[0-9a-f]{32}")
_PLACE = re.compile(r"\bline (\d+),? pos(?:ition)? (\d+)")
_AT_TOKEN = re.compile(r"at or near '([^']*)'")
_ADDED = r"(?:`[^`]*`\.)*`(?:_bergline_\w+|_file|_pos|_row_id)`"
_SUGGESTED = re.compile(rf", {_ADDED}(?=[,\]]|$)|{_ADDED}(?:, |(?=\]|$))|`_bergline_source`\.")
"""Columns, and an alias, that the queries of DELETE, UPDATE and MERGE add, in Spark's list of what may be meant."""
_CHANGES_ROWS = re.compile(r"\b(?:DELETE|UPDATE|MERGE)\b", re.IGNORECASE)
_PARSED = "\n== SQL ==\n"
_LOCK = threading.Lock()
_SENT: "OrderedDict[str, SentQuery]" = OrderedDict()
"""By the name of a frame in the text that was sent, or by the text itself if it is a part of what the user wrote."""


class SentQuery(msgspec.Struct, frozen=True):
    """A query, the name of each frame in the text that was sent, and what the user calls the tables."""

    query: RewrittenQuery
    head: str
    names: Mapping[str, str]
    labels: Mapping[str, str]

    @property
    def written(self) -> str:
        """What the user wrote."""
        return self.head + self.query.shown

    @property
    def text(self) -> str:
        """What is sent."""
        return self.head + self.query.text.format_map(self.names)

    def place(self, place: int) -> tuple[int, int]:
        """What was written where a place of the sent text is: first and last index."""
        if place < len(self.head):
            return place, place
        first, last = self.query.shown_place(place - len(self.head), self.names)
        return first + len(self.head), last + len(self.head)

    def label(self, name: str) -> str:
        """What the user calls the table that has this name in the sent text."""
        return next((self.labels[frame] for frame, known in self.names.items() if known == name), name)


def send(query: RewrittenQuery, head: str, frames: Iterable[str], labels: Mapping[str, str]) -> SentQuery:
    """A query with new names for its frames, which tell in an error which query it is about."""
    sent = SentQuery(query, head, {frame: f"bergline_{uuid.uuid4().hex}" for frame in frames}, labels)
    _remember(dict.fromkeys(sent.names.values(), sent))
    return sent


def _remember(sent: Mapping[str, SentQuery]) -> None:
    with _LOCK:
        _SENT.update(sent)
        while len(_SENT) > _REMEMBERED:
            _SENT.popitem(last=False)


def note_part(query: RewrittenQuery) -> None:
    """Note that a text that Spark parses is a part of what the user wrote."""
    if query.statement:
        _remember({query.sql.text: SentQuery(query, "", {}, {})})


@contextmanager
def sent_query(
    query: RewrittenQuery, head: str, frames: Mapping[str, DataFrame], labels: Mapping[str, str], spark: SparkSession
) -> Iterator[str]:
    """The text of a query whose frames Spark knows by name while the block runs."""
    sent = send(query, head, frames, labels)
    try:
        for frame, name in sent.names.items():
            frames[frame].createOrReplaceTempView(name)
        yield sent.text
    finally:
        for name in sent.names.values():
            spark.catalog.dropTempView(name)


def forget_queries() -> None:
    """Forget all queries."""
    with _LOCK:
        _SENT.clear()


def with_written_text(convert: Callable[[Any], Exception]) -> Callable[[Any], Exception]:
    """PySpark's function that makes Python exceptions of Java's, with what the user wrote in place of what was sent."""

    def converted(java_exception: Any) -> Exception:
        error = convert(java_exception)
        with suppress(Py4JError):  # it is better said in Spark's words than not at all
            return _translated(error) if isinstance(error, CapturedException) else error
        return error

    return converted


def _translated(error: CapturedException) -> CapturedException:
    text = str(error._desc)  # noqa: SLF001  (all that PySpark keeps of an error stands in such fields)
    contexts = list(error.getQueryContext()) if "SQL" in text or _PLACE.search(text) else []
    texts = [text, *(_sql_text(context) for context in contexts)]
    sent = next((_SENT[name] for found in texts for name in (*_NAME.findall(found), found) if name in _SENT), None)
    if sent is None:
        return error
    written = [_written_context(context, sent) for context in contexts]
    head, is_parsed, _ = text.partition(_PARSED)
    for before, after in zip(contexts, written, strict=True):
        if isinstance(before, SQLQueryContext):
            head = head.replace(before.summary(), after.summary())
    head, start = _with_written_place(head, sent, is_summary=bool(contexts))
    if is_parsed and start is not None:
        head += _PARSED + _marked(sent.written, start)
    kind = type(error)
    error.__class__ = type(kind.__name__, (_Translated, kind), {"__module__": kind.__module__, "__doc__": kind.__doc__})
    error.__dict__.update(_desc=_labelled(head, sent), _contexts=written, _sent=sent)
    error._stackTrace = _labelled(str(error._stackTrace), sent)  # noqa: SLF001
    return error


class _Translated:
    """What an error says of its query, as the user wrote it."""

    _contexts: list[Any]
    _sent: SentQuery

    def getQueryContext(self) -> list[Any]:  # noqa: N802  (Spark's name)
        """The parts of the user's text that the error is about."""
        return self._contexts

    def getMessageParameters(self) -> dict[str, str] | None:  # noqa: N802
        """What the message was made of."""
        found = super().getMessageParameters()  # type: ignore[misc]
        return None if found is None else {key: _labelled(str(value), self._sent) for key, value in found.items()}

    def getMessage(self) -> str:  # noqa: N802
        """The message alone."""
        return _labelled(super().getMessage(), self._sent)  # type: ignore[misc]


def _labelled(text: str, sent: SentQuery) -> str:
    labelled = _NAME.sub(lambda found: sent.label(found[0]), text)
    if not _CHANGES_ROWS.search(sent.written):
        return labelled
    message, state, rest = labelled.partition("SQLSTATE")  # the user's text, which is kept, comes after it
    return _SUGGESTED.sub("", message) + state + rest


def _sql_text(context: Any) -> str:
    if not isinstance(context, SQLQueryContext):
        return ""
    text = context._q.sqlText()  # noqa: SLF001
    return str(text.get()) if text.isDefined() else ""


def _written_context(context: Any, sent: SentQuery) -> Any:
    """The context with places and text as they were written, by Spark's own class."""
    if not isinstance(context, SQLQueryContext) or _sql_text(context) != sent.text:
        return context
    jvm: Any = SparkContext._jvm  # noqa: SLF001
    start, stop = sent.place(context.startIndex())[0], sent.place(context.stopIndex())[1]
    line, position = _line_and_position(sent.written, start)
    changed = {
        "line": line,
        "startPosition": position,
        "originStartIndex": start,
        "originStopIndex": stop,
        "sqlText": sent.written,
    }
    theirs = context._q  # noqa: SLF001
    fields = {str(theirs.productElementName(i)): theirs.productElement(i) for i in range(theirs.productArity())}
    return SQLQueryContext(
        theirs.copy(*(fields | {name: jvm.scala.Some(value) for name, value in changed.items()}).values())
    )


def _with_written_place(text: str, sent: SentQuery, *, is_summary: bool) -> tuple[str, int | None]:
    """A message whose `line 1 pos 7` is that of the user's text, and where in it that is.

    The heading of a summary, in brackets, is right already.
    """
    found = _PLACE.search(text)
    if found is None or (is_summary and text[: found.start()].endswith("(")):
        return text, None
    index = _index(sent.text, int(found[1]), int(found[2]))
    start, stop = sent.place(index)
    line, position = _line_and_position(sent.written, start)
    before, between, after = text[: found.start(1)], text[found.end(1) : found.start(2)], text[found.end(2) :]
    token = _AT_TOKEN.search(before)
    if token is not None and not sent.written.startswith(token[1], start):  # a word that only the sent text has
        before = before.replace(token[0], f"at or near '{sent.written[start : stop + 1]}'")
    return f"{before}{line}{between}{position}{after}", start


def _index(text: str, line: int, position: int) -> int:
    return sum(len(passed) + 1 for passed in text.split("\n")[: line - 1]) + position


def _line_and_position(text: str, index: int) -> tuple[int, int]:
    before = text[:index]
    return before.count("\n") + 1, index - (before.rfind("\n") + 1)


def _marked(text: str, index: int) -> str:
    """A text with Spark's mark below a place."""
    line, position = _line_and_position(text, index)
    lines = text.split("\n")
    marked: Iterable[str] = (*lines[:line], "-" * position + "^^^", *lines[line:])
    return "\n".join(marked) + "\n"
