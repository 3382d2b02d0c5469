"""The fixtures of the console."""

from support.servers.console_browser import browser, host, source, story

__all__ = ["browser", "host", "source", "story"]
