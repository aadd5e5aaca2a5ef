"""The names of the settings and of their environment variables, and the search for wrong names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

PREFIX = "AFTERWORD_"
DELIMITER = "__"
PROFILE_VARIABLE = "AFTERWORD_PROFILE"
_DEVELOPERS_PREFIXES = ("AFTERWORD_TEST_", "AFTERWORD_BENCH_")


def setting_fields(settings: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    """Yield the name of each setting as it stands in a profile, such as `store.url`, with its field.

    Settings without a section come first, as a profile needs it. A table of names, such as `prices`, is one setting.
    """
    sections = {name: options for name, field in settings.model_fields.items() if (options := section_options(field))}
    yield from ((name, field) for name, field in settings.model_fields.items() if name not in sections)
    for section, options in sections.items():
        yield from ((f"{section}.{name}", field) for name, field in options.model_fields.items())


def section_options(field: FieldInfo) -> type[BaseModel] | None:
    """Return the options that a section holds, None if the field is a setting itself."""
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def is_table(field: FieldInfo) -> bool:
    """Return whether the setting is a table whose keys the user chooses."""
    return isinstance(field.default, dict)


def variable_of(name: str) -> str:
    """Return the environment variable of a setting or section."""
    return f"{PREFIX}{name.upper().replace('.', DELIMITER)}"


def unknown_name_message(
    settings: type[BaseModel], environment: Mapping[str, str], profile: Mapping[str, Any]
) -> str | None:
    """Return a message about the first variable or key of the profile that is no setting, None if all are settings."""
    fields = dict(setting_fields(settings))
    tables = tuple(name for name, field in fields.items() if is_table(field))
    names = [name for name in fields if name not in tables]
    known_variables = {variable_of(name) for name in (*names, *settings.model_fields)}
    ignored = (*_DEVELOPERS_PREFIXES, *(f"{variable_of(name)}{DELIMITER}" for name in tables))
    for variable in sorted(environment):
        if _is_unknown_variable(variable.upper(), known_variables, ignored):
            return f"the variable {variable} is no setting{_suggestion(variable.upper(), known_variables)}"
    for key in profile_keys(profile):
        if key not in names and key not in settings.model_fields and key.partition(".")[0] not in tables:
            return f"{key} in the profile is no setting{_suggestion(key, names)}"
    return None


def _is_unknown_variable(upper: str, known_variables: Collection[str], ignored: tuple[str, ...]) -> bool:
    """Return whether a variable (in capitals) has our prefix, but is no setting and has no prefix that is `ignored`."""
    is_ours = upper.startswith(PREFIX) and not upper.startswith(ignored)
    return is_ours and upper not in known_variables and upper != PROFILE_VARIABLE


def profile_keys(profile: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names that a profile sets, such as `store.url`."""
    for key, value in profile.items():
        if isinstance(value, dict):
            yield from (f"{key}.{inner}" for inner in value)
        else:
            yield key


def _suggestion(name: str, names: Iterable[str]) -> str:
    nearest = get_close_matches(name, sorted(names), 1)
    return f"; did you mean {nearest[0]}?" if nearest else "; `afterword config` lists the settings"
