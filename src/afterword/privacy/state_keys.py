"""Keys of saved states: those whose values AutoGen and Agent Framework need unchanged, and one that marks examples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

EXAMPLE_MARK = "afterword_example"
"""The key that marks a message which the application put into a model context, for example to show a good answer."""

_IDENTIFIERS = frozenset(
    {"type", "source", "id", "role", "name", "author_name", "call_id", "tool_call_id", "version", "mime_type"}
)

NEVER_MASKED = _IDENTIFIERS | {"message_id", "thread_id"}
"""Keys whose values are not searched for secrets."""

NEVER_HIDDEN = _IDENTIFIERS | {
    *("created_at", "models_usage", "target", "format_string", "is_error", "finish_reason", "full_message_id"),
}
"""Keys whose values stay in a message that is off the record."""

NEVER_BLANKED = _IDENTIFIERS | {
    *(
        "created_at",
        "target",
        "finish_reason",
        "full_message_id",
        "thread_id",
        "agent_id",
        "component_type",
        "provider",
    ),
}
"""Keys whose values stay when forgotten words are blanked."""

_FRAMEWORK_PROPERTIES = frozenset({"_attribution", "_group", "created_at"})


def without_application_data(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message without what an application stored beside its words, since that may repeat them.

    AutoGen stores it under `metadata`, Agent Framework under `additional_properties`, together with properties of its
    own, which stay.
    """
    kept: dict[str, Any] = {}
    if isinstance(message.get("metadata"), dict):
        kept["metadata"] = {}
    if isinstance(properties := message.get("additional_properties"), dict):
        kept["additional_properties"] = {
            name: value for name, value in properties.items() if name in _FRAMEWORK_PROPERTIES
        }
    return {**message, **kept}
