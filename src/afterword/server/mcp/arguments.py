"""What is wrong with the arguments of a tool's call, in words that an agent can act on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

LONGEST_NAME, MOST_FAULTS = 40, 3
_FAULTS = {
    "missing": "is missing",
    "string_type": "must be a text",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "list_type": "must be a list",
    "literal_error": "must be {expected}",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "too_long": "must have at most {max_length} entries",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
}
"""What is wrong with an argument, by the type of the error of pydantic."""


def unknown_arguments_message(given: Iterable[str], known: Iterable[str]) -> str | None:
    """Return a message that names the arguments that a tool does not have, and those that it has; else None."""
    known = list(known)
    unknown = [repr(name[:LONGEST_NAME]) for name in given if name not in known][:MOST_FAULTS]
    if not unknown:
        return None
    allowed = f"this tool takes {', '.join(known)}" if known else "this tool takes none"
    return f"there is no argument {' or '.join(unknown)}; {allowed}"


def invalid_arguments_message(error: ValidationError) -> str:
    """Return a message that says what each wrong argument must be. It does not repeat what was given."""
    return "; ".join(dict.fromkeys(map(_fault, error.errors(include_input=False)[:MOST_FAULTS])))


def _fault(error: Mapping[str, Any]) -> str:
    name, *inner = error["loc"] or ("the arguments",)
    what = _FAULTS.get(error["type"], error["msg"][:1].lower() + error["msg"][1:])
    place = f"entry {inner[0] + 1} of {name}" if inner and isinstance(inner[0], int) else name
    return f"{place} {what.format(**error.get('ctx', {}))}"
