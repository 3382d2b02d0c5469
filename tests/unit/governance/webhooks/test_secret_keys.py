"""Keys of secrets."""

import base64
import os
from pathlib import Path

import pytest

from bergline.errors import InvalidInputError, RefusedError, StorageError
from bergline.governance.webhooks.secret_keys import KEY_VARIABLE, SecretKeys, is_encrypted, load_keys

SECRET = "whsec_c2VjcmV0"  # noqa: S105  (of nobody)
OLD, NEW = (base64.b64encode(bytes([byte]) * 32).decode() for byte in (0xFB, 0xFF))


def test_first_key_encrypts_and_all_decrypt() -> None:
    before, both, after = SecretKeys([OLD]), SecretKeys([NEW, OLD]), SecretKeys([NEW])
    stored = before.encrypt(SECRET)
    assert is_encrypted(stored)
    assert "c2VjcmV0" not in stored
    assert before.encrypt(SECRET) != stored
    assert both.decrypt(stored) == SECRET
    assert [keys.is_newest(stored) for keys in (before, both, after)] == [True, False, False]
    assert [keys.can_decrypt(stored) for keys in (before, both, after)] == [True, True, False]
    assert after.decrypt(both.encrypt(SECRET)) == SECRET


@pytest.mark.parametrize("keys", [[], [NEW]])
def test_lost_key_is_said_and_what_was_never_encrypted_is_read(keys: list[str]) -> None:
    stored = SecretKeys([OLD]).encrypt(SECRET)
    with pytest.raises(RefusedError, match="expected the key that encrypted it, found") as lost:
        SecretKeys(keys).decrypt(stored)
    assert KEY_VARIABLE in lost.value.hints[0]
    assert SecretKeys(keys).decrypt(SECRET) == SECRET


def test_changed_secret_is_not_taken() -> None:
    stored = SecretKeys([OLD]).encrypt(SECRET)
    with pytest.raises(RefusedError):
        SecretKeys([OLD]).decrypt(stored[:-6] + "AAAAA=")


def test_without_a_key_texts_stay_as_they_are() -> None:
    keys = SecretKeys()
    assert not keys
    assert keys.encrypt(SECRET) == SECRET
    assert not keys.is_newest(SECRET)


@pytest.mark.parametrize("key", ["short", OLD[:-4], "ä" * 44, f"{OLD}A", "!" * 44])
def test_what_is_no_key_is_refused_and_not_repeated(key: str) -> None:
    with pytest.raises(InvalidInputError, match="32 bytes in base64 as key 2") as refused:
        SecretKeys([OLD, key])
    assert key not in str(refused.value)
    assert OLD not in repr(SecretKeys([OLD]))


def test_keys_are_of_the_environment_or_a_file(tmp_path: Path) -> None:
    stored = SecretKeys([OLD]).encrypt(SECRET)
    file = tmp_path / "keys"
    file.write_text(f"{NEW.replace('/', '_')}\n{OLD}\n")
    for keys in (load_keys(None, {KEY_VARIABLE: f"{NEW},{OLD}"}), load_keys(str(file), {})):
        assert (keys.decrypt(stored), keys.is_newest(keys.encrypt(SECRET))) == (SECRET, True)
    assert load_keys(os.path.relpath(file), {}).file == str(file)
    assert not load_keys(None, {KEY_VARIABLE: " "})
    with pytest.raises(InvalidInputError, match="found both"):
        load_keys(str(file), {KEY_VARIABLE: OLD})
    for content, what in ((b"", "found none"), (b"\xff\xfe", "found another file")):
        file.write_bytes(content)
        with pytest.raises(InvalidInputError, match=what):
            load_keys(str(file), {})
    with pytest.raises(StorageError, match="cannot read the keys"):
        load_keys(str(tmp_path / "none"), {})
