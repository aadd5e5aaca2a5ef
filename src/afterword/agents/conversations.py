"""Which conversation a memory was last asked for, so that its tools know what the person has said in it.

An agent asks its memory before it calls its tools, in the same task. So each of several conversations at once finds its
own, though they share one memory; what was built anew from a dump finds it by the scope.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from types import MappingProxyType

from autogen_core.model_context import ChatCompletionContext

from afterword.facts.scopes import Scope

_NOTHING: Mapping[Scope, ChatCompletionContext] = MappingProxyType({})
_heard: ContextVar[Mapping[Scope, ChatCompletionContext]] = ContextVar("afterword_heard", default=_NOTHING)


def hear(scope: Scope, context: ChatCompletionContext) -> None:
    """Note that the running task is in this conversation, as far as this scope is concerned."""
    _heard.set({**_heard.get(), scope: context})


def conversation(scope: Scope) -> ChatCompletionContext | None:
    """Return the conversation that the running task is in, None where no memory of the scope was asked in it."""
    return _heard.get().get(scope)
