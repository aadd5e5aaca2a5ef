"""Reads from a live agent or team what its saved state lacks: the user proxies, and which messages are examples."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from afterword.privacy.policy import Privacy
from afterword.privacy.state_keys import EXAMPLE_MARK

USER_PROXY = "UserProxyAgent"
"""The name of AutoGen's class of agents through which people speak. Comparing names avoids an import of the class."""


def user_proxy_names(agent_or_team: object) -> Iterator[str]:
    """Yield the names of the user proxy agents in an agent or team. People speak through these."""
    for agent in agents_in(agent_or_team):
        if any(kind.__name__ == USER_PROXY for kind in type(agent).__mro__):
            yield str(getattr(agent, "name", ""))


def with_marked_examples(state: Mapping[str, Any], agent_or_team: object, privacy: Privacy) -> Mapping[str, Any]:
    """Return the state of an agent or team with a mark on each initial message of its model contexts.

    The application wrote these messages, often as examples, and nobody said them. AutoGen ignores the mark. A session
    that was resumed has them with masked secrets.
    """
    contexts = (getattr(agent, "_model_context", None) for agent in agents_in(agent_or_team))
    written = [
        message.model_dump()
        for context in contexts
        for message in getattr(context, "_initial_messages", None) or ()
        if isinstance(message, BaseModel)
    ]
    if not written:
        return state
    marked = copy.deepcopy(dict(state))
    _mark_examples(marked, list(zip(written, privacy.mask_state({"messages": written})["messages"], strict=True)))
    return marked


def agents_in(agent_or_team: object) -> Iterator[object]:
    """Yield an agent or team, and the agents and teams inside it."""
    yield agent_or_team
    for member in (*getattr(agent_or_team, "_participants", ()), getattr(agent_or_team, "_team", None)):
        if member is not None:
            yield from agents_in(member)


def _mark_examples(value: object, examples: list[tuple[Any, Any]]) -> None:
    """Mark each example in each list of messages once, since a person may repeat its words."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "messages" and isinstance(inner, list):
                _mark_examples_in_saved_messages(inner, list(examples))
            else:
                _mark_examples(inner, examples)


def _mark_examples_in_saved_messages(messages: list[Any], examples: list[tuple[Any, Any]]) -> None:
    for message in messages:
        form = next((forms for forms in examples if message in forms), None)
        if form is not None:
            examples.remove(form)
            message[EXAMPLE_MARK] = True
