"""Decoders by type: built once, by one thread at a time."""

import subprocess
import sys

from bergline.json_decoders import JsonDecoders


def test_threads_that_decode_a_type_for_the_first_time_together() -> None:
    program = """
import sys
import threading
from typing import Optional
import msgspec
from bergline.format.encoding.wire import decode_json

sys.setswitchinterval(1e-6)
for _ in range(100):
    inner = msgspec.defstruct("Inner", [(f"a{i}", Optional[int], None) for i in range(20)])
    outer = msgspec.defstruct("Outer", [(f"b{i}", Optional[inner], None) for i in range(20)])
    together = threading.Barrier(4)
    def decode():
        together.wait()
        decode_json(b'{"b1": {"a1": 1}}', outer, "test")
    threads = [threading.Thread(target=decode) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print("done")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_decoder_is_built_once_with_the_hook() -> None:
    class Word(str):
        __slots__ = ()

    decoders = JsonDecoders(lambda as_type, wire: as_type(wire))
    assert decoders.of(Word).decode(b'"a"') == Word("a")
    assert decoders.of(Word) is decoders.of(Word)
