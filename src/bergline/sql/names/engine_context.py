"""What an engine has beside the lakes: names that are its own."""

from typing import Protocol


class EngineContext(Protocol):
    """What an engine has beside the lakes."""

    @property
    def user(self) -> str | None:
        """Who runs statements: the owner of what they make."""
        ...

    def has_temporary_view(self, name: str) -> bool:
        """Whether there is such a view, which comes before every table of its name."""
        ...

    def has_catalog(self, name: str) -> bool:
        """Whether names that begin so are the engine's."""
        ...

    def namespaces(self) -> list[str]:
        """The namespaces of the engine's current catalog."""
        ...

    def catalogs(self) -> list[str]:
        """The engine's catalogs that are known so far."""
        ...

    def temporary_views(self) -> list[str]:
        """The names of the session's temporary views."""
        ...


class NoEngine(EngineContext):
    """No engine: nothing but the lakes."""

    @property
    def user(self) -> str | None:
        """Nobody."""
        return None

    def has_temporary_view(self, name: str) -> bool:
        """No."""
        return False

    def has_catalog(self, name: str) -> bool:
        """No."""
        return False

    def namespaces(self) -> list[str]:
        """None."""
        return []

    def catalogs(self) -> list[str]:
        """None."""
        return []

    def temporary_views(self) -> list[str]:
        """None."""
        return []
