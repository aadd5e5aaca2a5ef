"""Puts the two parts of a memory block into an agent's model context, each exactly once.

The stable part stands at the start of the context, next to the agent's own system message, because some model clients
accept only one system message and merge the two. If the context shows only the last messages, this part stands right
before the latest user message, in the user role: these clients refuse a request with a system message there. The part
for the question always stands right before the latest user message.

This module also records which conversation the running task belongs to, so that memory tools can read what the person
has said in it. An agent queries its memory before it calls its tools, in the same task. So several conversations may
share one memory. A tool that was loaded from a dump finds its conversation by the scope.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from types import MappingProxyType
from weakref import WeakKeyDictionary

from autogen_core.model_context import ChatCompletionContext, ChatCompletionContextState
from autogen_core.models import LLMMessage, SystemMessage, UserMessage

from afterword.agents.saved_blocks import SOURCE
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import is_generic
from afterword.privacy.blanking import letters_and_digits
from afterword.recall.block import OPENING, opening_tag, question_tag

_NONE: Mapping[Scope, ChatCompletionContext] = MappingProxyType({})
_conversations: ContextVar[Mapping[Scope, ChatCompletionContext]] = ContextVar("afterword_conversations", default=_NONE)
_labels: WeakKeyDictionary[ChatCompletionContext, WeakKeyDictionary[object, Collection[str]]] = WeakKeyDictionary()
"""For each context the memories that have put blocks into it, each with the labels of its blocks."""

_INJECTED = re.compile(
    rf"\s*(?:{re.escape(OPENING)}\b|(?:#+ )?(?:potentially )?relevant memor(?:y|ies)\b)", re.IGNORECASE
)

_REQUEST = re.compile(
    r"\s*We are working to address the following user request:\s*(?P<words>.*?)\s*To answer this request ",
    re.DOTALL,
)
"""How the orchestrator of a `MagenticOneGroupChat` passes a person's words on to the team."""


def enter_conversation(scope: Scope, context: ChatCompletionContext) -> None:
    """Record that the running task belongs to this conversation, for the memory of this scope."""
    _conversations.set({**_conversations.get(), scope: context})


async def place_block(
    context: ChatCompletionContext,
    text: str,
    *,
    mark: str,
    other_marks: Collection[str] = (),
    before_question: bool = False,
) -> bool:
    """Replace the blocks in the context that start with `mark` by `text`. Return whether the model will see it.

    The new block stands at the start of the context, or with `before_question` right before the latest user message. An
    empty text only removes the old block. A context may show only some of its messages. If the block would hide the
    message that the agent must answer, or a block that starts with one of `other_marks`, it is left out.
    """
    seen = list(await context.get_messages())
    contents = await _contents(context, seen)
    if contents is None:
        return await _append(context, seen, text, mark)
    others = [message for message in contents.messages if not is_block(message, mark)]
    first = _first_place(contents.messages, others, mark)
    await contents.write(others)
    if not text:
        return True
    needed = _needed(list(await context.get_messages()), other_marks)
    for arranged in _arrangements(others, text, None if before_question else first):
        await contents.write(arranged)
        shown = await context.get_messages()
        if any(is_block(message, mark) for message in shown) and all(message in shown for message in needed):
            return True
    await contents.write(others)
    return False


async def remove_other_blocks(context: ChatCompletionContext, memory: object, labels: Collection[str]) -> None:
    """Remove the blocks that neither this memory, whose blocks have these labels, nor another live one has put there.

    A saved state that was loaded may hold blocks of other people, of scopes that are read no more, and of former names.
    """
    if not isinstance(context, Hashable):
        return
    memories = _labels.setdefault(context, WeakKeyDictionary())
    memories[memory] = labels
    marks = [tag(label) for each in memories.values() for label in each for tag in (opening_tag, question_tag)]
    contents = await _contents(context, list(await context.get_messages()))
    if contents is not None:
        await contents.write(
            [
                message
                for message in contents.messages
                if not is_block(message, OPENING) or any(is_block(message, mark) for mark in marks)
            ]
        )


async def current_messages(scope: Scope) -> list[LLMMessage]:
    """Return the messages of the running task's conversation; none if no memory of the scope was queried in the task.

    Messages that the context hides from the model are included, if the context gives access to them. Its initial
    messages are left out: the application wrote these, and nobody said them.
    """
    context = _conversations.get().get(scope)
    if context is None:
        return []
    seen = list(await context.get_messages())
    contents = await _contents(context, seen)
    written = getattr(context, "_initial_messages", None) or ()
    return [message for message in (contents.messages if contents else seen) if message not in written]


def latest_question(messages: Sequence[LLMMessage]) -> str:
    """Return the text of the latest user message that is not a memory block; an empty text if there is none."""
    return next((_words(message) for message in reversed(messages) if _is_question(message)), "")


def questions(messages: Sequence[LLMMessage], owner: Scope) -> tuple[str, str]:
    """Return what a person said last, and the text of the latest message. They differ if an agent of a team spoke last.

    People are named "user" or the like, or as the owner of the memory is. If nobody is, the first text is that of the
    latest message, and the second is what the first speaker said last.
    """
    asked = [message for message in messages if isinstance(message, UserMessage) and _is_question(message)]
    name = letters_and_digits(owner.user_id or "")
    spoken = [words for message in asked if (words := _words_of_person(message, name))]
    if spoken or not asked:
        return "".join(spoken[-1:]), latest_question(messages)
    of_first = [message for message in asked if message.source == asked[0].source]
    return _words(asked[-1]), _words(of_first[-1])


def _words_of_person(message: UserMessage, name: str) -> str:
    """Return the words of a person, who may have this name, in a message; an empty text if an agent wrote it."""
    words = _words(message)
    request = _REQUEST.match(words)
    if request is not None:
        return request["words"]
    return words if is_generic(message.source) or letters_and_digits(message.source) == name else ""


def user_texts(messages: Sequence[LLMMessage]) -> set[str]:
    """Return the texts of the user messages that are not memory blocks."""
    return {_words(message) for message in messages if _is_question(message)}


def is_block(message: LLMMessage, mark: str) -> bool:
    """Return whether a message is a memory block that starts with `mark`. Text that a user typed is never a block."""
    ours = isinstance(message, SystemMessage) or (isinstance(message, UserMessage) and message.source == SOURCE)
    return ours and isinstance(message.content, str) and message.content.startswith(mark)


class _MessageList:
    """Accesses the private message list of a context. All contexts of AutoGen have one.

    This is faster than saving and loading the state of the context, which copies every picture.
    """

    def __init__(self, messages: list[LLMMessage]) -> None:
        self._list = messages
        self.messages = list(messages)

    async def write(self, messages: list[LLMMessage]) -> None:
        if self._list != messages:
            self._list[:] = messages


class _SavedState:
    """Accesses the messages of a context by its public methods that save and load its state. This is slower."""

    def __init__(self, context: ChatCompletionContext, messages: list[LLMMessage]) -> None:
        self._context = context
        self.messages = messages

    async def write(self, messages: list[LLMMessage]) -> None:
        await self._context.load_state(ChatCompletionContextState(messages=messages).model_dump())


async def _contents(context: ChatCompletionContext, seen: Sequence[LLMMessage]) -> _MessageList | _SavedState | None:
    """Return access to the messages of the context; None if it stores its messages in an unknown way."""
    private = getattr(context, "_messages", None)
    if isinstance(private, list) and (private or not seen):
        return _MessageList(private)
    state = await context.save_state()
    if isinstance(state.get("messages"), list) and (state["messages"] or not seen):
        return _SavedState(context, ChatCompletionContextState.model_validate(state).messages)
    return None


async def _append(context: ChatCompletionContext, seen: Sequence[LLMMessage], text: str, mark: str) -> bool:
    """Append the block to a context whose messages cannot be replaced, unless the model sees the same text already."""
    if text and not any(is_block(message, mark) and message.content == text for message in seen):
        await context.add_message(UserMessage(content=text, source=SOURCE))
    return True


def _first_place(messages: Sequence[LLMMessage], others: Sequence[LLMMessage], mark: str) -> int:
    """Return the index of the block at the start: its old index, or the first one after the blocks of other memories.

    So several blocks stay in the order of their memories, and an unchanged block does not move.
    """
    leading = next((place for place, message in enumerate(messages) if not _is_leading(message)), len(messages))
    old_place = next((place for place in range(leading) if is_block(messages[place], mark)), None)
    if old_place is not None:
        return old_place
    return next((place for place, message in enumerate(others) if not _is_leading(message)), len(others))


def _is_leading(message: LLMMessage) -> bool:
    return isinstance(message, SystemMessage) and is_block(message, OPENING)


def _arrangements(others: list[LLMMessage], text: str, first: int | None) -> Iterator[list[LLMMessage]]:
    if first is not None:
        yield [*others[:first], SystemMessage(content=text), *others[first:]]
    asked = next((place for place in reversed(range(len(others))) if _is_question(others[place])), None)
    if asked is not None or first is None:
        asked = len(others) if asked is None else asked
        yield [*others[:asked], UserMessage(content=text, source=SOURCE), *others[asked:]]


def _needed(seen: Sequence[LLMMessage], other_marks: Collection[str]) -> list[LLMMessage]:
    question = next((message for message in reversed(seen) if _is_question(message)), None)
    blocks = [message for message in seen if any(is_block(message, mark) for mark in other_marks)]
    return [*seen[-1:], *([question] if question else []), *blocks]


def _is_question(message: LLMMessage) -> bool:
    return isinstance(message, UserMessage) and message.source != SOURCE and not _INJECTED.match(_words(message))


def _words(message: LLMMessage) -> str:
    content = message.content if isinstance(message, UserMessage) else ""
    return content if isinstance(content, str) else "\n".join(part for part in content if isinstance(part, str))
