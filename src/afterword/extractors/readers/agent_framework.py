"""Read what Microsoft Agent Framework saves: sessions, message lists, and checkpoints of workflows.

Pickled values in a checkpoint are never decoded, because decoding them can run code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from afterword.extractors.readers.duplicates import merge_views
from afterword.extractors.readers.utterances import (
    ATTACHMENT,
    IMAGE,
    UNKNOWN_SPEAKER,
    JsonObject,
    ReadingLog,
    SavedConversation,
    Utterance,
    call_or_result_mark,
    call_text,
    local_instant,
    objects_in,
    output_text,
    speaker_name,
    without_data_urls,
)
from afterword.facts.transcripts import Role

SAID_AT = "created_at"
"""The additional property in which afterword's history provider stores the time of a message."""

_LOOP_TEXTS = frozenset({"Continue working on the task. If it is complete, say so.", "please continue."})
_LOOP_PROGRESS = "Progress so far:\n- "
_EXECUTOR_STATES = "_executor_state"
_PICKLED = "__pickled__"
_ROLES = frozenset({"user", "assistant", "system", "developer", "tool"})
_WITHOUT_WORDS = frozenset({"usage", "function_approval_request", "function_approval_response"})


def is_framework_message(value: object) -> bool:
    """Whether the value has the shape of a message of Agent Framework: a role, and a list of contents."""
    return isinstance(value, dict) and isinstance(value.get("role"), str) and isinstance(value.get("contents"), list)


def is_framework_prompt(text: str) -> bool:
    """Whether a text in the user role was written by the framework itself to make an agent go on."""
    return text.strip() in _LOOP_TEXTS or text.startswith(_LOOP_PROGRESS)


def read_framework_state(state: JsonObject, log: ReadingLog) -> SavedConversation | None:
    """Return the conversation of a session, a checkpoint or a single message, or None for any other object."""
    if is_framework_message(state):
        return read_framework_messages([state], log)
    if state.get("type") == "session" and "session_id" in state and isinstance(state.get("state"), dict):
        return _conversation("Agent Framework session", _read_message_lists(state, log), log)
    if "checkpoint_id" in state and "workflow_name" in state and isinstance(state.get("state"), dict):
        return _read_checkpoint(state, log)
    return None


def read_framework_messages(messages: list[object], log: ReadingLog) -> SavedConversation:
    """Return the conversation of a list of messages, for example of the lines of a history file."""
    return _conversation("Agent Framework messages", [messages], log)


def is_session_without_messages(state: object) -> bool:
    """Whether the state is a session whose messages are stored elsewhere: in a file, or by the model's provider."""
    if not isinstance(state, dict) or state.get("type") != "session" or not isinstance(state.get("state"), dict):
        return False
    return not any(_find_message_lists(state))


def _read_checkpoint(state: JsonObject, log: ReadingLog) -> SavedConversation:
    """Return the conversation of a workflow. Each executor has a session, and several may hold the same message."""
    executors = state["state"].get(_EXECUTOR_STATES)
    sessions: list[list[object]] = []
    for executor in executors.values() if isinstance(executors, dict) else ():
        session = executor.get("agent_session") if isinstance(executor, dict) else None
        if isinstance(session, dict) and isinstance(session.get("state"), dict):
            sessions += _read_message_lists(session, log)
        elif isinstance(executor, dict) and _PICKLED in executor:
            log.skip("pickled content")
    if _holds_pickled_value(state.get("messages")):
        log.skip("pickled content")
    saved_at = local_instant(state.get("timestamp"), log)
    conversation = _conversation("Agent Framework checkpoint", sessions, log)
    utterances = [
        utterance if utterance.said_at else utterance._replace(said_at=saved_at)
        for utterance in conversation.utterances
    ]
    return SavedConversation(conversation.layout, utterances, conversation.agents)


def _holds_pickled_value(value: object) -> bool:
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return (isinstance(value, dict) and _PICKLED in value) or any(map(_holds_pickled_value, children))


def _read_message_lists(session: JsonObject, log: ReadingLog) -> list[list[object]]:
    """Return the message lists of a session, one for each history provider."""
    lists = list(_find_message_lists(session))
    if not lists:
        is_remote = session.get("service_session_id") is not None
        log.skip("words kept by the provider" if is_remote else "no messages in the session")
    return lists


def _find_message_lists(session: JsonObject) -> Iterator[list[object]]:
    for kept_state in session["state"].values():
        messages = kept_state.get("messages") if isinstance(kept_state, dict) else None
        if isinstance(messages, list) and any(map(is_framework_message, messages)):
            yield messages


def _conversation(layout: str, lists: list[list[object]], log: ReadingLog) -> SavedConversation:
    agents = frozenset(
        speaker_name(message.get("author_name"))
        for messages in lists
        for message in messages
        if isinstance(message, dict) and message.get("role") == "assistant"
    ) - {UNKNOWN_SPEAKER}
    utterances: list[Utterance] = []
    for messages in lists:
        view = [
            utterance
            for message in objects_in(messages, log)
            for utterance in _message_utterances(message, log, agents)
        ]
        utterances = merge_views(utterances, view)
    return SavedConversation(layout, utterances, agents)


def _message_utterances(message: JsonObject, log: ReadingLog, agents: frozenset[str]) -> Iterator[Utterance]:
    """Yield one utterance for each tool call and result of a message, and one for all of its text."""
    properties = message.get("additional_properties")
    properties = properties if isinstance(properties, dict) else {}
    if _is_logged_as_skipped(message, properties, log):
        return
    said_at = local_instant(properties.get(SAID_AT), log)
    source, _ = _speaker(message, agents)
    words = []
    for text, mark in _content_texts(message["contents"], log):
        if mark is None:
            words.append(text)
        else:
            yield Utterance(source, text, Role.TOOL, said_at, None, mark)
    if text := "\n".join(words):
        source, role = _speaker_of_words(message, properties, text, agents)
        yield Utterance(source, text, role, said_at)


def _is_logged_as_skipped(message: JsonObject, properties: JsonObject, log: ReadingLog) -> bool:
    """Return whether a message is of an unknown type, or a summary of others. Such a message is counted in the log."""
    role = message.get("role")
    if not is_framework_message(message) or role not in _ROLES:
        log.skip_type(role if isinstance(role, str) else message.get("type"))
        return True
    if _is_summary(properties):
        log.skip("summary of earlier messages")
        return True
    return False


def _speaker_of_words(
    message: JsonObject, properties: JsonObject, text: str, agents: frozenset[str]
) -> tuple[str, Role]:
    """Return the speaker of a message's text, which a provider or the framework may have put in."""
    source, role = _speaker(message, agents)
    if is_injected_message(properties):
        return source, Role.MEMORY
    return ("workflow", Role.SYSTEM) if role is Role.HUMAN and is_framework_prompt(text) else (source, role)


def _content_texts(contents: Iterable[object], log: ReadingLog) -> Iterator[tuple[str, str | None]]:
    """Yield the texts of a message's contents, each with the mark of its tool call or result, or None for words."""
    for content in contents:
        if isinstance(content, str):
            yield without_data_urls(content), None
        elif isinstance(content, dict):
            text, mark = _content_text(content, log)
            if text or mark is not None:
                yield text, mark
        else:
            log.skip("unreadable content")


def _is_summary(properties: JsonObject) -> bool:
    """Return whether the message is a summary of other messages, made by compaction. The others stay in the list."""
    group = properties.get("_group")
    return isinstance(group, dict) and ("_summary_of_message_ids" in group or "_summary_of_group_ids" in group)


def _speaker(message: JsonObject, agents: frozenset[str]) -> tuple[str, Role]:
    role, name = message["role"], speaker_name(message.get("author_name"))
    source = role if name == UNKNOWN_SPEAKER else name
    if role == "user":
        return source, Role.AGENT if name in agents else Role.HUMAN
    return source, {"assistant": Role.AGENT, "tool": Role.TOOL}.get(role, Role.SYSTEM)


def is_injected_message(properties: JsonObject) -> bool:
    """Whether a context provider put the message with these properties into the conversation."""
    attribution = properties.get("_attribution")
    return isinstance(attribution, dict) and "source_id" in attribution


def _content_text(content: JsonObject, log: ReadingLog) -> tuple[str, str | None]:
    """Return the text of a content, and the mark of its tool call or result, or None for words."""
    kind = content.get("type")
    if kind == "text" and isinstance(content.get("text"), str):
        return without_data_urls(content["text"]), None
    if kind == "function_call":
        return call_text(content.get("name"), content.get("arguments")), call_or_result_mark(
            "call", content.get("call_id")
        )
    if kind == "function_result":
        return output_text(content.get("result"), log), call_or_result_mark("result", content.get("call_id"))
    if kind in ("data", "uri", "hosted_file"):
        media = content.get("media_type")
        return IMAGE if isinstance(media, str) and media.startswith("image/") else ATTACHMENT, None
    if kind == "text_reasoning":
        log.skip("reasoning")
    elif kind in _WITHOUT_WORDS:
        log.skip(f"event {kind}")
    else:
        log.skip_type(kind)
    return "", None
