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

from afterword.agents.saved_blocks import BLOCK_SOURCE
from afterword.facts.scopes import Scope
from afterword.facts.transcripts import is_generic_name
from afterword.privacy.blanking import letters_and_digits
from afterword.recall.block import OPENING, opening_tag, opening_tag_for_question

_NO_CONVERSATIONS: Mapping[Scope, ChatCompletionContext] = MappingProxyType({})
_conversations: ContextVar[Mapping[Scope, ChatCompletionContext]] = ContextVar(
    "afterword_conversations", default=_NO_CONVERSATIONS
)
_labels_by_memory: WeakKeyDictionary[ChatCompletionContext, WeakKeyDictionary[object, Collection[str]]] = (
    WeakKeyDictionary()
)
"""For each context the memories that have put blocks into it, each with the labels of its blocks."""

_INJECTED_TEXT = re.compile(
    rf"\s*(?:{re.escape(OPENING)}\b|(?:#+ )?(?:potentially )?relevant memor(?:y|ies)\b)", re.IGNORECASE
)

_TEAM_REQUEST = re.compile(
    r"\s*We are working to address the following user request:\s*(?P<words>.*?)\s*To answer this request ",
    re.DOTALL,
)
"""How the orchestrator of a `MagenticOneGroupChat` passes a person's words on to the team."""


def set_conversation_of_task(scope: Scope, context: ChatCompletionContext) -> None:
    """Record that the running task belongs to this conversation, for the memory of this scope."""
    _conversations.set({**_conversations.get(), scope: context})


async def replace_block(
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
    contents = await _message_access(context, seen)
    if contents is None:
        return await _append_block(context, seen, text, mark)
    others = [message for message in contents.messages if not is_block(message, mark)]
    first = _place_of_leading_block(contents.messages, others, mark)
    await contents.write(others)
    if not text:
        return True
    needed = _messages_to_keep(list(await context.get_messages()), other_marks)
    for arranged in _arrangements(others, text, None if before_question else first):
        await contents.write(arranged)
        if _has_block_and_messages(await context.get_messages(), mark, needed):
            return True
    await contents.write(others)
    return False


def _has_block_and_messages(shown: Sequence[LLMMessage], mark: str, needed: Sequence[LLMMessage]) -> bool:
    """Whether a context shows a block that starts with `mark`, and all the needed messages."""
    return any(is_block(message, mark) for message in shown) and all(message in shown for message in needed)


async def remove_stale_blocks(context: ChatCompletionContext, memory: object, labels: Collection[str]) -> None:
    """Remove the blocks that no live memory has put into the context. `labels` are those of this memory's blocks.

    A saved state that was loaded may hold blocks of other people, of scopes that are read no more, and of former names.
    """
    if not isinstance(context, Hashable):
        return
    memories = _labels_by_memory.setdefault(context, WeakKeyDictionary())
    memories[memory] = labels
    marks = [
        tag(label) for each in memories.values() for label in each for tag in (opening_tag, opening_tag_for_question)
    ]
    contents = await _message_access(context, list(await context.get_messages()))
    if contents is not None:
        await contents.write(
            [
                message
                for message in contents.messages
                if not is_block(message, OPENING) or any(is_block(message, mark) for mark in marks)
            ]
        )


async def messages_of_task(scope: Scope) -> list[LLMMessage]:
    """Return the messages of the running task's conversation; none if no memory of the scope was queried in the task.

    Messages that the context hides from the model are included, if the context gives access to them. Its initial
    messages are left out: the application wrote these, and nobody said them.
    """
    context = _conversations.get().get(scope)
    if context is None:
        return []
    seen = list(await context.get_messages())
    contents = await _message_access(context, seen)
    written = getattr(context, "_initial_messages", None) or ()
    return [message for message in (contents.messages if contents else seen) if message not in written]


def latest_user_text(messages: Sequence[LLMMessage]) -> str:
    """Return the text of the latest user message that is not a memory block; an empty text if there is none."""
    return next((_user_text(message) for message in reversed(messages) if _is_from_user(message)), "")


def recall_queries(messages: Sequence[LLMMessage], owner: Scope) -> tuple[str, str]:
    """Return the texts for which facts are searched: what a person said last, and the latest message.

    The two differ if an agent of a team spoke last. A speaker is a person if the name is generic, such as "user", or is
    the name of the memory's owner. Without such a speaker the texts are the latest message, and the last message of the
    first speaker.
    """
    asked = [message for message in messages if isinstance(message, UserMessage) and _is_from_user(message)]
    name = letters_and_digits(owner.user_id or "")
    spoken = [words for message in asked if (words := _text_of_person(message, name))]
    if spoken or not asked:
        return "".join(spoken[-1:]), latest_user_text(messages)
    of_first = [message for message in asked if message.source == asked[0].source]
    return _user_text(asked[-1]), _user_text(of_first[-1])


def _text_of_person(message: UserMessage, name: str) -> str:
    """Return the words of a person, who may have this name, in a message; an empty text if an agent wrote it."""
    words = _user_text(message)
    request = _TEAM_REQUEST.match(words)
    if request is not None:
        return request["words"]
    return words if is_generic_name(message.source) or letters_and_digits(message.source) == name else ""


def user_texts(messages: Sequence[LLMMessage]) -> set[str]:
    """Return the texts of the user messages that are not memory blocks."""
    return {_user_text(message) for message in messages if _is_from_user(message)}


def is_block(message: LLMMessage, mark: str) -> bool:
    """Return whether a message is a memory block that starts with `mark`. Text that a user typed is never a block."""
    ours = isinstance(message, SystemMessage) or (isinstance(message, UserMessage) and message.source == BLOCK_SOURCE)
    return ours and isinstance(message.content, str) and message.content.startswith(mark)


class _ListAccess:
    """Accesses the private message list of a context. All contexts of AutoGen have one.

    This is faster than saving and loading the state of the context, which copies every picture.
    """

    def __init__(self, messages: list[LLMMessage]) -> None:
        self._list = messages
        self.messages = list(messages)

    async def write(self, messages: list[LLMMessage]) -> None:
        if self._list != messages:
            self._list[:] = messages


class _StateAccess:
    """Accesses the messages of a context by its public methods that save and load its state. This is slower."""

    def __init__(self, context: ChatCompletionContext, messages: list[LLMMessage]) -> None:
        self._context = context
        self.messages = messages

    async def write(self, messages: list[LLMMessage]) -> None:
        await self._context.load_state(ChatCompletionContextState(messages=messages).model_dump())


async def _message_access(
    context: ChatCompletionContext, seen: Sequence[LLMMessage]
) -> _ListAccess | _StateAccess | None:
    """Return access to the messages of the context; None if it stores its messages in an unknown way."""
    private = getattr(context, "_messages", None)
    if isinstance(private, list) and (private or not seen):
        return _ListAccess(private)
    state = await context.save_state()
    if isinstance(state.get("messages"), list) and (state["messages"] or not seen):
        return _StateAccess(context, ChatCompletionContextState.model_validate(state).messages)
    return None


async def _append_block(context: ChatCompletionContext, seen: Sequence[LLMMessage], text: str, mark: str) -> bool:
    """Append the block to a context whose messages cannot be replaced, unless the model sees the same text already."""
    if text and not any(is_block(message, mark) and message.content == text for message in seen):
        await context.add_message(UserMessage(content=text, source=BLOCK_SOURCE))
    return True


def _place_of_leading_block(messages: Sequence[LLMMessage], others: Sequence[LLMMessage], mark: str) -> int:
    """Return the index of the block at the start: its old index, or the first one after the blocks of other memories.

    So several blocks stay in the order of their memories, and an unchanged block does not move.
    """
    leading = next((place for place, message in enumerate(messages) if not _is_leading_block(message)), len(messages))
    old_place = next((place for place in range(leading) if is_block(messages[place], mark)), None)
    if old_place is not None:
        return old_place
    return next((place for place, message in enumerate(others) if not _is_leading_block(message)), len(others))


def _is_leading_block(message: LLMMessage) -> bool:
    return isinstance(message, SystemMessage) and is_block(message, OPENING)


def _arrangements(others: list[LLMMessage], text: str, first: int | None) -> Iterator[list[LLMMessage]]:
    if first is not None:
        yield [*others[:first], SystemMessage(content=text), *others[first:]]
    asked = next((place for place in reversed(range(len(others))) if _is_from_user(others[place])), None)
    if asked is not None or first is None:
        asked = len(others) if asked is None else asked
        yield [*others[:asked], UserMessage(content=text, source=BLOCK_SOURCE), *others[asked:]]


def _messages_to_keep(seen: Sequence[LLMMessage], other_marks: Collection[str]) -> list[LLMMessage]:
    question = next((message for message in reversed(seen) if _is_from_user(message)), None)
    blocks = [message for message in seen if any(is_block(message, mark) for mark in other_marks)]
    return [*seen[-1:], *([question] if question else []), *blocks]


def _is_from_user(message: LLMMessage) -> bool:
    """Whether a message was written by a user, and not put into the context by a memory."""
    return (
        isinstance(message, UserMessage)
        and message.source != BLOCK_SOURCE
        and not _INJECTED_TEXT.match(_user_text(message))
    )


def _user_text(message: LLMMessage) -> str:
    content = message.content if isinstance(message, UserMessage) else ""
    return content if isinstance(content, str) else "\n".join(part for part in content if isinstance(part, str))
