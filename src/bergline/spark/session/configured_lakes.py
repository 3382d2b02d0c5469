"""Lakes in Spark's configuration: `spark.bergline.<name>.uri` and the other settings of each lake.

Lakes that were connected by configuration are shared by the sessions of this process, and closed with the last of them.
"""

import contextlib
import threading
from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from bergline.catalog.pointer.pointer_store import CATALOG, CATALOG_NAME, CREATE_HINT
from bergline.errors import BerglineError, InvalidInputError, NotFoundError, near_names
from bergline.lake.lake import DEFAULT_NAME, Lake, connect
from bergline.lake.opening import environment_token

PREFIX = "spark.bergline."
SESSION_SETTING = f"{PREFIX}session"
"""The setting that has the id of the session that was attached: no lake's, as it has one part only."""
_PROPERTY = "property."
_SETTINGS = ("uri", "warehouse", "name", "create", "busy-timeout", "ref", "default")
_BOOLEANS = {"true": True, "false": False}
_LOCK = threading.Lock()
_CONNECTED: dict["LakeSettings", Lake] = {}


class LakeSettings(msgspec.Struct, frozen=True):
    """The arguments of `connect` for one lake."""

    uri: str | None
    warehouse: str | None = None
    name: str = DEFAULT_NAME
    properties: tuple[tuple[str, str], ...] = ()
    busy_timeout: float | None = None
    create: bool | None = None
    ref: str | None = None

    def __repr__(self) -> str:
        return f"LakeSettings({self.name!r})"  # a URI and properties may hold secrets

    def connect(self) -> Lake:
        """Open the lake; the token of a REST server may be in the environment."""
        properties = dict(self.properties)
        optional = {"busy_timeout": self.busy_timeout, "create": self.create}
        return connect(
            self.uri,
            warehouse=self.warehouse,
            name=self.name,
            ref=self.ref,
            properties=environment_token(self.uri or "", properties) | properties,
            **{key: value for key, value in optional.items() if value is not None},  # type: ignore[arg-type]
        )


class ConfiguredLakes(msgspec.Struct, frozen=True):
    """Lakes by the names that they are attached as, and which of them is the default."""

    lakes: dict[str, LakeSettings]
    default: str


def read_lakes(settings: Mapping[str, str], default: str | None = None) -> ConfiguredLakes | None:
    """The lakes of a configuration, whose keys are without `spark.bergline.`; None if there are none.

    The default is the one that is given, or marked as such. InvalidInputError names the setting that is wrong.
    """
    by_lake = settings_by_lake(settings)
    if not by_lake:
        return None
    defaults = [lake for lake, given in by_lake.items() if _boolean(lake, "default", given)]
    lakes = {lake: _lake_settings(lake, given) for lake, given in by_lake.items()}
    return ConfiguredLakes(lakes, default or _default_of(list(lakes), defaults))


def settings_by_lake(settings: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """The settings of each lake, of which some may be missing; InvalidInputError for one that no lake has."""
    by_lake: dict[str, dict[str, str]] = {}
    for key, value in sorted(settings.items()):
        lake, dot, setting = key.partition(".")
        if PREFIX + key == SESSION_SETTING:
            continue
        if not (lake and dot):
            raise _no_lake_named(key)
        _check_setting(lake, setting, value)
        by_lake.setdefault(lake, {})[setting] = value
    return by_lake


def connect_lakes(wanted: Mapping[str, LakeSettings]) -> dict[str, Lake]:
    """Open lakes, all or none; those that are open already are shared."""
    with _LOCK, contextlib.ExitStack() as opened:
        lakes: dict[str, Lake] = {}
        new: dict[LakeSettings, Lake] = {}
        for name, settings in wanted.items():
            lake = new.get(settings) or _CONNECTED.get(settings)
            if lake is None or lake.is_closed:
                lake = new[settings] = opened.enter_context(_connect(name, settings))
            lakes[name] = lake
        _CONNECTED.update(new)
        opened.pop_all()
        return lakes


def close_lakes(lakes: Collection[Lake], still_used: Collection[Lake]) -> None:
    """Close those of the lakes that were connected by configuration, unless another session has them."""
    with _LOCK:
        for settings, lake in list(_CONNECTED.items()):
            if lake in lakes and lake not in still_used:
                del _CONNECTED[settings]
                lake.close()


def _connect(name: str, settings: LakeSettings) -> Lake:
    try:
        return settings.connect()
    except NotFoundError as error:
        if error.kind not in {CATALOG, CATALOG_NAME} or CREATE_HINT not in error.hints:
            raise _with_note(error, name) from error.__cause__
        hints = [f"`{PREFIX}{name}.create` = `true` creates it", *(h for h in error.hints if h != CREATE_HINT)]
        raise _with_note(NotFoundError(error.message, kind=error.kind, name=error.name, hints=hints), name) from error
    except BerglineError as error:
        raise _with_note(error, name) from error.__cause__


def _with_note(error: BerglineError, name: str) -> BerglineError:
    error.add_note(f"lake `{name}` is configured by `{PREFIX}{name}.*`")
    return error


def _check_setting(lake: str, setting: str, value: Any) -> None:
    key = f"{PREFIX}{lake}.{setting}"
    if setting not in _SETTINGS and not (setting.startswith(_PROPERTY) and setting != _PROPERTY):
        meant = ("uri",) if setting.lower() == "url" else near_names(setting, (*_SETTINGS, "property"))
        near = [f"`{PREFIX}{lake}.{name}`" for name in meant]
        hints = [f"did you mean {', '.join(near)}?"] if near else []
        expected = ", ".join(f"`{name}`" for name in _SETTINGS)
        raise InvalidInputError(
            f"expected {expected} or `{_PROPERTY}*` of lake `{lake}`, found `{key}`",
            hints=[*hints, f"credentials and other properties of `connect` go under `{PREFIX}{lake}.{_PROPERTY}`"],
        )
    if not value and not setting.startswith(_PROPERTY):
        raise InvalidInputError(f"expected a value for `{key}`, found empty text")


def _lake_settings(lake: str, given: Mapping[str, str]) -> LakeSettings:
    if "uri" not in given:
        others = ", ".join(f"`{PREFIX}{lake}.{setting}`" for setting in given)
        raise InvalidInputError(f"expected `{PREFIX}{lake}.uri`, found only {others}")
    return LakeSettings(
        given["uri"],
        given.get("warehouse"),
        given.get("name", DEFAULT_NAME),
        tuple((key.removeprefix(_PROPERTY), value) for key, value in given.items() if key.startswith(_PROPERTY)),
        _seconds(lake, given.get("busy-timeout")),
        _boolean(lake, "create", given),
        given.get("ref"),
    )


def _boolean(lake: str, setting: str, given: Mapping[str, str]) -> bool | None:
    value = given.get(setting)
    if value is not None and value.lower() not in _BOOLEANS:
        raise InvalidInputError(f"expected true or false for `{PREFIX}{lake}.{setting}`, found `{value}`")
    return None if value is None else _BOOLEANS[value.lower()]


def _seconds(lake: str, value: str | None) -> float | None:
    try:
        return None if value is None else float(value)
    except ValueError:
        raise InvalidInputError(
            f"expected a number of seconds for `{PREFIX}{lake}.busy-timeout`, found `{value}`"
        ) from None


def _default_of(lakes: list[str], defaults: list[str]) -> str:
    """The lake whose tables need no lake before their names."""
    if len(defaults) == 1 or len(lakes) == 1:
        return (defaults or lakes)[0]
    found = ", ".join(f"`{lake}`" for lake in defaults or lakes)
    chosen = "several" if defaults else "none"
    raise InvalidInputError(
        f"expected one default lake, found {chosen} of {found}",
        hints=[f"`{PREFIX}{(defaults or lakes)[0]}.default` = `true` for one of them"],
    )


def _no_lake_named(key: str) -> InvalidInputError:
    setting = key.lstrip(".")
    hints = [f"for a lake with the name `lake` write `{PREFIX}lake.{setting}`"] if setting in _SETTINGS else []
    return InvalidInputError(
        f"expected the name of a lake and its setting, as `{PREFIX}lake.uri`, found `{PREFIX}{key}`", hints=hints
    )
