"""Response bodies in bounded memory, plain and in gzip."""

import threading
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bergline.server.cache import response_cache
from bergline.server.cache.response_cache import (
    CachedResponse,
    CompressedPrefix,
    ResponseCache,
    compress_prefix,
    gzip_member,
)

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

    def slowly(data: bytes) -> CompressedPrefix:
        packed.append(1)
        begun.set()
        assert go_on.wait(30)
        return compress_prefix(data)

    monkeypatch.setattr(response_cache, "compress_prefix", slowly)
    answers = ResponseCache(1 << 20)
    answer, response = kept(answers, "a"), []
    threads = [threading.Thread(target=lambda: response.append(answers.gzip(answer))) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert begun.wait(30)
    go_on.set()
    for thread in threads:
        thread.join(30)
    assert len(packed) == 1
    assert len(response) == 4
    assert len(set(response)) == 1


def test_both_forms_count() -> None:
    packed = len(compress_prefix(BODY.removesuffix(b"{end}")).blocks)
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


@given(st.binary(max_size=2000), st.binary(max_size=300))
def test_beginning_and_end_are_one_member_of_gzip(beginning: bytes, end: bytes) -> None:
    reader = zlib.decompressobj(wbits=31)
    assert reader.decompress(gzip_member(compress_prefix(beginning), end)) == beginning + end
    assert reader.eof
    assert reader.unused_data == b""


def test_long_ends_are_taken_too() -> None:
    packed = compress_prefix(b'{"a":1}' * 10_000)
    assert len(packed.blocks) < 1000
    for end in (b"", b"x" * 70_000, b"y" * 200_000):
        assert zlib.decompress(gzip_member(packed, end), wbits=31) == b'{"a":1}' * 10_000 + end


def test_the_end_is_not_compressed() -> None:
    secret = b'"s3.secret-access-key":"secret secret secret"'
    assert secret in gzip_member(compress_prefix(secret * 100), secret)
