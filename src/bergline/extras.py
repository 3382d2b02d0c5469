"""How to install what an extra of the package brings, wherever the package itself came from: a wheel is on no index."""

import re

_EXTRA = re.compile(r"""extra == ['"](?P<extra>[^'"]+)['"]""")


def install_hint(extra: str) -> str:
    """The command that installs what an extra needs."""
    needed = sorted(text.partition(";")[0].strip() for text in _requirements() if _is_of(text, extra))
    packages = " ".join(f"'{package}'" for package in needed)
    whose = f"the extra `{extra}` of bergline"
    return f"pip install {packages}, {whose}" if packages else f"install {whose}"


def _requirements() -> list[str]:
    import importlib.metadata  # noqa: PLC0415  (takes 10 ms, and is needed only by hints)

    try:
        return importlib.metadata.requires("bergline") or []
    except importlib.metadata.PackageNotFoundError:  # run from its sources
        return []


def _is_of(requirement: str, extra: str) -> bool:
    found = _EXTRA.search(requirement)
    return found is not None and found["extra"] == extra
