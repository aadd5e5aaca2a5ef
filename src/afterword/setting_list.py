"""The settings as people read them: each value with its source, and a profile that shows the defaults."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from afterword.errors import StoreInvalid
from afterword.setting_names import (
    DELIMITER,
    is_table,
    profile_keys,
    section_options,
    setting_fields,
    variable_of,
)
from afterword.settings import Settings, load, profile_path, read_profile
from afterword.store.database.urls import shown_url

_TOP = """\
# The settings of afterword. A line that begins with # shows a default: remove the # to change it.
# Environment variables win over this file. AFTERWORD_STORE__URL, for example, is url of [store].
# `afterword config` shows what is in force.
"""


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting with its value as text, and where the value comes from: a variable, the profile, or the default."""

    name: str
    value: str
    source: str
    variable: str


def settings_with_sources() -> list[Setting]:
    """Return every setting with its value and where it comes from, in the order of a profile. Keys are not shown.

    Raises `SettingsInvalid`.
    """
    loaded, profile = load(), read_profile()
    path, in_profile = profile_path(), {*profile, *profile_keys(profile)}
    variables = {name.upper(): name for name in os.environ}
    return [
        Setting(
            name,
            _as_text(_value(loaded, name)),
            _variable(name, variables) or (str(path) if name in in_profile else "default"),
            variable_of(name),
        )
        for name, _ in setting_fields(Settings)
    ]


def commented_profile() -> str:
    """Return a profile that shows every setting with its default, as comments."""
    lines, section = [_TOP], ""
    for name, field in setting_fields(Settings):
        head, _, key = name.rpartition(".")
        if head != section:
            lines += ["", *_about(head), f"[{head}]"]
        section = head
        if is_table(field):
            lines += ["", f"# {name}: {field.description}"]
            lines += [f'# [{name}."gpt-4o-mini"]', '# prompt_usd = "0.15"', '# completion_usd = "0.60"', ""]
        else:
            shown = f"{key} = {_as_toml(field)}" if field.default is not None else f"{key} is not set"
            lines.append(f"# {shown}  # {field.description}")
    return "\n".join(lines) + "\n"


def _value(loaded: Settings, name: str) -> Any:
    value: Any = loaded
    for part in name.split("."):
        value = getattr(value, part)
    return value


def _variable(name: str, variables: Mapping[str, str]) -> str | None:
    """Return the environment variable that sets a setting: its own, that of its section, or one of a table."""
    own, section = variable_of(name), variable_of(name.partition(".")[0])
    names = (upper for upper in sorted(variables) if upper in (own, section) or upper.startswith(f"{own}{DELIMITER}"))
    return next((variables[upper] for upper in names), None)


def _as_text(value: Any) -> str:
    if isinstance(value, SecretStr):
        return "set, not shown"
    if isinstance(value, str) and "://" in value:
        return _without_password(value)
    if isinstance(value, dict | list):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, float):
        return f"{value:g}"
    return "none" if value is None else str(value)


def _without_password(address: str) -> str:
    try:
        return shown_url(address)
    except StoreInvalid:  # the address of a model's endpoint, or one that is wrong
        scheme, _, place = address.partition("://")
        return f"{scheme}://{place.partition('?')[0].rpartition('@')[2]}"


def _as_toml(field: FieldInfo) -> str:
    default = field.default
    return json.dumps([*map(str, default)] if isinstance(default, list) else default, ensure_ascii=False)


def _about(section: str) -> list[str]:
    """Return what is written about the options of a section, as comments."""
    options = section_options(Settings.model_fields[section])
    described = inspect.cleandoc((options and options.__doc__) or "").replace("`", "")
    return [f"# {line}".rstrip() for line in described.splitlines()]
