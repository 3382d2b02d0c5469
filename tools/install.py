"""Installs packages into the environment that runs it: with uv, from where pip is configured to get them.

Usage: .venv/bin/python tools/install.py -r requirements-demo.lock (arguments of `uv pip install`, which are pip's too).
Where uv is not to be had, pip installs, which takes longer.
"""

import ast
import importlib.util
import os
import subprocess
import sys

SETTINGS = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_NO_INDEX",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "client-cert": "SSL_CLIENT_CERT",
    "proxy": "ALL_PROXY",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
}
"""pip's settings, and the variables by which uv takes them."""
SECTIONS = ("global", "install", ":env:")
"""Where pip finds its settings, the last word last."""


def uv_environment(configured: str) -> dict[str, str]:
    """Variables for uv, from what `pip config list` says."""
    given = dict(line.split("=", 1) for line in configured.splitlines() if "=" in line)
    found = {}
    for section in SECTIONS:
        for name, variable in SETTINGS.items():
            if text := given.get(f"{section}.{name}"):
                separator = "," if name == "find-links" else " "
                found[variable] = separator.join(ast.literal_eval(text).split())
    if "UV_INDEX" in found:
        found["UV_INDEX_STRATEGY"] = "unsafe-best-match"  # as pip, which takes the newest of all its indexes
    return found


def main(arguments: list[str]) -> int:
    """Install; the exit code of uv or pip."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    if importlib.util.find_spec("uv") is None:
        return subprocess.call([*pip, "install", "--quiet", *arguments])  # noqa: S603  (our own arguments)
    listed = subprocess.run([*pip, "config", "list"], capture_output=True, text=True, check=True)  # noqa: S603
    uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", sys.executable]
    return subprocess.call([*uv, *arguments], env={**uv_environment(listed.stdout), **os.environ})  # noqa: S603


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
