"""The reference of settings: each with its type, default, environment variable and meaning."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from typing import Any

from pydantic.fields import FieldInfo

from afterword.setting_names import section_options, setting_fields, variable_of
from afterword.settings import Settings
from generator.markup import code, table, type_name

HEADS = ("setting and variable", "meaning", "type", "default")


def setting_tables() -> str:
    """Return a table for the settings without a section, then a heading, a text and a table for each section."""
    rows: dict[str, list[tuple[str, ...]]] = {}
    for name, field in setting_fields(Settings):
        section, _, key = name.rpartition(".")
        rows.setdefault(section, []).append(_row(name, key, field))
    return "\n\n".join(_parts(rows))


def _parts(rows: dict[str, list[tuple[str, ...]]]) -> Iterator[str]:
    for section, lines in rows.items():
        if section:
            options = section_options(Settings.model_fields[section])
            yield f"### `[{section}]`"
            yield inspect.cleandoc((options and options.__doc__) or "")
        yield table(HEADS, lines)


def _row(name: str, key: str, field: FieldInfo) -> tuple[str, ...]:
    names = f"{code(key)}<br>{code(variable_of(name))}"
    return names, field.description or "", type_name(field.annotation), _default(field.default)


def _default(default: Any) -> str:
    if default is None:
        return "not set"
    if default in ([], {}):
        return "none"
    if isinstance(default, list):
        return ", ".join(code(str(part)) for part in default)
    return code(
        f"{default:g}"
        if isinstance(default, float)
        else json.dumps(default)
        if isinstance(default, bool)
        else str(default)
    )
