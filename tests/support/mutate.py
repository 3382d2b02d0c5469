"""Bytes and JSON that were right once, damaged by chance."""

import random
from typing import Any

from bergline.format.encoding.avro_container import encode_long

_NUMBERS = [0, 1, -1, 63, -64, 2**20, 2**31 - 1, 2**31, 2**40, 2**62, 2**63 - 1, -(2**63), -(2**40)]
_JSON = [None, True, 0, -1, 7, 2**70, 1.5, "", "int", "null", "record", "no such type", [], {}, ["null"], [[]]]


def mutated(data: bytes, chance: random.Random) -> bytes:
    """Some bytes changed, cut, doubled, moved, or replaced by numbers at the edges."""
    damaged = bytearray(data)
    for _ in range(chance.choice([1, 1, 1, 2, 5])):
        place = chance.randrange(len(damaged) + 1)
        end = min(len(damaged), place + chance.choice([1, 1, 2, 8, 100]))
        match chance.randrange(7):
            case 0 if place < len(damaged):
                damaged[place] ^= 1 << chance.randrange(8)
            case 1 if place < len(damaged):
                damaged[place] = chance.choice([0, 1, 2, 0x7F, 0x80, 0xFF])
            case 2:
                del damaged[place:end]
            case 3:
                damaged[place:place] = damaged[place:end]
            case 4:
                damaged[place:end] = encode_long(chance.choice(_NUMBERS))
            case 5:
                damaged[place:place] = chance.randbytes(chance.choice([1, 4, 16]))
            case 6:
                del damaged[place:]
    return bytes(damaged)


def mutated_json(value: Any, chance: random.Random) -> Any:
    """A JSON value with one thing in it replaced, left out or doubled."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(list(value))
        rest = {k: v for k, v in value.items() if k != key}
        if chance.random() < 0.1:
            return rest
        return {**rest, key: mutated_json(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.9:
        place = chance.randrange(len(value))
        if chance.random() < 0.1:
            return [*value[:place], *value[place + 1 :]]
        if chance.random() < 0.1:
            return [*value[:place], value[place], *value[place:]]
        return [*value[:place], mutated_json(value[place], chance), *value[place + 1 :]]
    return chance.choice([*_JSON, value])
