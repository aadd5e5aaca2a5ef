"""Where a memory's block stands in an agent's model context: exactly one block, where the model sees it.

At the start of the context it is next to the agent's own system message, so that clients that take one system message
only can merge the two. A context that hides its start (one that shows the last messages only) gets the block right
before the latest user message, in the user role: a system message there makes such clients refuse the whole request.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Protocol

from autogen_core.model_context import ChatCompletionContext, ChatCompletionContextState
from autogen_core.models import LLMMessage, SystemMessage, UserMessage

from afterword.recall.block import OPENING

SOURCE = "afterword_memory"
"""The source of a block that stands in the user role."""

_INJECTED = re.compile(
    rf"\s*(?:{re.escape(OPENING)}\b|(?:#+ )?(?:potentially )?relevant memor(?:y|ies)\b)", re.IGNORECASE
)


async def place(context: ChatCompletionContext, text: str, *, mark: str, besides: Collection[str] = ()) -> bool:
    """Make `text` the only block in the context that starts with `mark`; return whether the model will see it.

    The empty text removes the block. A block is left out where showing it would hide the message that the agent is to
    answer, or a block that starts with one of the marks `besides`.
    """
    seen = list(await context.get_messages())
    kept = await _kept(context, seen)
    if kept is None:
        return await _appended(context, seen, text, mark)
    others = [message for message in kept.messages if not is_block(message, mark)]
    first = _first_place(kept.messages, others, mark)
    await kept.write(others)
    if not text:
        return True
    needed = _needed(list(await context.get_messages()), besides)
    for arranged in _arrangements(others, text, first):
        await kept.write(arranged)
        shown = await context.get_messages()
        if any(is_block(message, mark) for message in shown) and all(message in shown for message in needed):
            return True
    await kept.write(others)
    return False


async def everything(context: ChatCompletionContext) -> list[LLMMessage]:
    """Return all that a context keeps, hidden or not; what it shows where it does not tell of more."""
    seen = list(await context.get_messages())
    kept = await _kept(context, seen)
    return kept.messages if kept else seen


def latest_question(messages: Sequence[LLMMessage]) -> str:
    """Return the words of the latest user message that is no injected memory; the empty text where there is none."""
    return next((_words(message) for message in reversed(messages) if _is_question(message)), "")


def is_block(message: LLMMessage, mark: str) -> bool:
    """Return whether a message is a memory's block that starts with `mark`; a user who types one wrote no block."""
    ours = isinstance(message, SystemMessage) or (isinstance(message, UserMessage) and message.source == SOURCE)
    return ours and isinstance(message.content, str) and message.content.startswith(mark)


class _Kept(Protocol):
    """Everything that a context keeps, hidden or not."""

    messages: list[LLMMessage]

    async def write(self, messages: list[LLMMessage]) -> None: ...


class _KeptInList:
    """All contexts of AutoGen keep one list. It is private, but saving and loading would copy every picture."""

    def __init__(self, messages: list[LLMMessage]) -> None:
        self._list = messages
        self.messages = list(messages)

    async def write(self, messages: list[LLMMessage]) -> None:
        if self._list != messages:
            self._list[:] = messages


class _KeptInState:
    """The public way: a context's saved state."""

    def __init__(self, context: ChatCompletionContext, messages: list[LLMMessage]) -> None:
        self._context = context
        self.messages = messages

    async def write(self, messages: list[LLMMessage]) -> None:
        await self._context.load_state(ChatCompletionContextState(messages=messages).model_dump())


async def _kept(context: ChatCompletionContext, seen: Sequence[LLMMessage]) -> _Kept | None:
    """Return what the context keeps; None where it shows messages but tells of none: it keeps them elsewhere."""
    private = getattr(context, "_messages", None)
    if isinstance(private, list) and (private or not seen):
        return _KeptInList(private)
    state = await context.save_state()
    if isinstance(state.get("messages"), list) and (state["messages"] or not seen):
        return _KeptInState(context, ChatCompletionContextState.model_validate(state).messages)
    return None


async def _appended(context: ChatCompletionContext, seen: Sequence[LLMMessage], text: str, mark: str) -> bool:
    """Add the block to a context that can only be added to, unless the model sees this very text already."""
    if text and not any(is_block(message, mark) and message.content == text for message in seen):
        await context.add_message(UserMessage(content=text, source=SOURCE))
    return True


def _first_place(kept: Sequence[LLMMessage], others: Sequence[LLMMessage], mark: str) -> int:
    """Return where the block goes at the beginning: where it stood, else after the blocks of other memories.

    So several blocks stand in the order of their memories, and none moves while it does not change.
    """
    leading = next((place for place, one in enumerate(kept) if not _is_leading(one)), len(kept))
    stood = next((place for place in range(leading) if is_block(kept[place], mark)), None)
    if stood is not None:
        return stood
    return next((place for place, one in enumerate(others) if not _is_leading(one)), len(others))


def _is_leading(message: LLMMessage) -> bool:
    return isinstance(message, SystemMessage) and is_block(message, OPENING)


def _arrangements(others: list[LLMMessage], text: str, first: int) -> Iterator[list[LLMMessage]]:
    yield [*others[:first], SystemMessage(content=text), *others[first:]]
    asked = next((place for place in reversed(range(len(others))) if _is_question(others[place])), None)
    if asked is not None:
        yield [*others[:asked], UserMessage(content=text, source=SOURCE), *others[asked:]]


def _needed(seen: Sequence[LLMMessage], besides: Collection[str]) -> list[LLMMessage]:
    question = next((message for message in reversed(seen) if _is_question(message)), None)
    blocks = [message for message in seen if any(is_block(message, mark) for mark in besides)]
    return [*seen[-1:], *([question] if question else []), *blocks]


def _is_question(message: LLMMessage) -> bool:
    return isinstance(message, UserMessage) and message.source != SOURCE and not _INJECTED.match(_words(message))


def _words(message: LLMMessage) -> str:
    content = message.content if isinstance(message, UserMessage) else ""
    return content if isinstance(content, str) else "\n".join(part for part in content if isinstance(part, str))
