"""Small disks of their own, to fill and to protect; only where this user may mount."""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def mounted(directory: Path, size: str = "4m") -> Iterator[None]:
    """A disk in memory at the directory."""
    if _run("mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(directory)):
        pytest.skip("needs the right to mount: not given on this machine")
    try:
        yield
    finally:
        _run("umount", "-l", str(directory))


def remount_read_only(directory: Path) -> None:
    """Let nobody write to the disk any more."""
    assert _run("mount", "-o", "remount,ro", str(directory)) == 0


def _run(command: str, *arguments: str) -> int:
    program = shutil.which(command)
    return subprocess.run([program, *arguments], capture_output=True, check=False).returncode if program else 1
