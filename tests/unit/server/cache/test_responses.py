"""Bodies in bounded memory, in both forms."""

import threading
import zlib

import pytest

from bergline.server.cache import responses as kept_answers
from bergline.server.cache.responses import CachedResponse, Packed, ResponseCache, pack

BODY = b'{"a":1,"b":2}' * 1000 + b"{end}"


def kept(answers: ResponseCache, key: str, body: bytes = BODY, end: bytes = b"{end}") -> CachedResponse:
    return answers.find(key, lambda: CachedResponse(key, body, end))


def test_both_forms_take_another_end() -> None:
    answers = ResponseCache(1 << 20)
    answer = kept(answers, "a")
    other = BODY.removesuffix(b"{end}") + b"{other}"
    assert (answer.plain(), answer.plain(b"{other}")) == (BODY, other)
    assert zlib.decompress(answers.gzip(answer), wbits=31) == BODY
    assert zlib.decompress(answers.gzip(answer, b"{other}"), wbits=31) == other


def test_short_answers_are_not_worth_packing() -> None:
    assert not CachedResponse("a", b"x" * 8191).is_long
    assert CachedResponse("a", b"x" * 8192).is_long


def test_an_answer_is_packed_once_by_many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    packed: list[int] = []
    begun, go_on = threading.Event(), threading.Event()

    def slowly(data: bytes) -> Packed:
        packed.append(1)
        begun.set()
        assert go_on.wait(30)
        return pack(data)

    monkeypatch.setattr(kept_answers, "pack", slowly)
    answers = ResponseCache(1 << 20)
    answer, told = kept(answers, "a"), []
    threads = [threading.Thread(target=lambda: told.append(answers.gzip(answer))) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert begun.wait(30)
    go_on.set()
    for thread in threads:
        thread.join(30)
    assert len(packed) == 1
    assert len(told) == 4
    assert len(set(told)) == 1


def test_both_forms_count() -> None:
    packed = len(pack(BODY.removesuffix(b"{end}")).blocks)
    answers = ResponseCache(3 * len(BODY) + packed)
    for key in "abc":
        kept(answers, key)
    answers.gzip(kept(answers, "c"))
    assert [key for key in "abc" if answers.known(key)] == ["a", "b", "c"]
    answers.gzip(kept(answers, "b"))
    assert [key for key in "abc" if answers.known(key)] == ["b", "c"]
    kept(answers, "d")  # takes the place of b in both forms
    assert [key for key in "abcd" if answers.known(key)] == ["c", "d"]
    kept(answers, "e")
    assert [key for key in "cde" if answers.known(key)] == ["c", "d", "e"]


def test_what_is_not_kept_is_packed_all_the_same() -> None:
    answers = ResponseCache(len(BODY))
    gone = kept(answers, "a")
    kept(answers, "b")
    assert answers.known("a") is None
    assert zlib.decompress(answers.gzip(gone), wbits=31) == BODY
    assert answers.known("b")
    alone = kept(answers, "b")
    answers.gzip(alone)  # too large in both forms
    assert answers.known("b") is None
    assert kept(answers, "c")
    assert answers.known("c")
