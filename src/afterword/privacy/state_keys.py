"""Keys and parts of saved states that are treated apart: ids, types, marks, and the calls and results of tools."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeGuard

EXAMPLE_MARK = "afterword_example"
"""The key that marks a message which the application put into a model context, for example to show a good answer."""

_IDENTIFIERS = frozenset(
    "type source id role name author_name call_id tool_call_id tool_use_id version mime_type".split()
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


TOOL_ROLES = frozenset({"tool", "function"})
CODE_OUTPUT = re.compile(r"\s{0,9}exitcode: -?\d{1,9} \(execution (?:succeeded|failed)\)\s*Code output:")
"""How the output of code begins that a user proxy of v0.2 has run by itself and sent under the person's name."""


@dataclass(frozen=True, slots=True)
class MessageParts:
    """The content of a message: the calls of tools, the results of tools, and in `words` everything else."""

    words: Any
    calls: list[Mapping[str, Any]]
    results: list[Mapping[str, Any]]

    @property
    def are_of_tools(self) -> bool:
        """Whether there is a call or a result of a tool."""
        return bool(self.calls or self.results)


def split_content(content: Any) -> MessageParts:
    """Return the content of a message by the kind of its parts.

    Anthropic's API lists calls and results of tools as parts of a message. Its results stand in messages with the role
    `user`, but a person did not say them.
    """
    if not isinstance(content, list):
        return MessageParts(content, [], [])
    calls, results = list(filter(is_tool_call, content)), list(filter(is_tool_result, content))
    if not (calls or results):
        return MessageParts(content, [], [])
    return MessageParts([part for part in content if not (is_tool_call(part) or is_tool_result(part))], calls, results)


def is_tool_call(part: object) -> TypeGuard[Mapping[str, Any]]:
    """Return whether a part of a message is a call of a tool, such as `tool_use` or `server_tool_use`."""
    return _has_type_ending(part, "tool_use")


def is_tool_result(part: object) -> TypeGuard[Mapping[str, Any]]:
    """Return whether a part of a message is the result of a tool, such as `tool_result` or `web_search_tool_result`."""
    return _has_type_ending(part, "tool_result")


def _has_type_ending(part: object, ending: str) -> bool:
    kind = part.get("type") if isinstance(part, Mapping) else None
    return isinstance(kind, str) and kind.replace("-", "_").endswith(ending)


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
