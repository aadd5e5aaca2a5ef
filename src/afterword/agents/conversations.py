"""The conversation that the running task is in, so that memory tools know what the person has said in it.

An agent queries its memory before it calls its tools, in the same task. So several conversations may share one memory.
A tool that was loaded from a dump finds its conversation by the scope.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from types import MappingProxyType

from autogen_core.model_context import ChatCompletionContext

from afterword.facts.scopes import Scope

_NONE: Mapping[Scope, ChatCompletionContext] = MappingProxyType({})
_conversations: ContextVar[Mapping[Scope, ChatCompletionContext]] = ContextVar("afterword_conversations", default=_NONE)


def enter_conversation(scope: Scope, context: ChatCompletionContext) -> None:
    """Record that the running task is in this conversation, for the memory of this scope."""
    _conversations.set({**_conversations.get(), scope: context})


def current_conversation(scope: Scope) -> ChatCompletionContext | None:
    """Return the conversation of the running task; None if no memory of the scope was queried in it."""
    return _conversations.get().get(scope)
