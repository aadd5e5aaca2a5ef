"""Memory that a program put into a conversation is nobody's words, in whichever form it was put there."""

from __future__ import annotations

from typing import Any

import pytest

from afterword.extractors.readers import read_state
from afterword.facts.transcripts import Role

HUMAN, MEMORY, AGENT, SYSTEM = Role.HUMAN, Role.MEMORY, Role.AGENT, Role.SYSTEM
BLOCK = '<afterword:memory scope="default/user/lena">\n- Lena lives in Berlin.\n</afterword:memory>'


def user(text: str) -> dict[str, Any]:
    return {"content": text, "source": "user", "type": "UserMessage"}


def system(text: str) -> dict[str, Any]:
    return {"content": text, "type": "SystemMessage"}


def read(*messages: dict[str, Any]) -> list[tuple[Role, str]]:
    transcript = read_state({"type": "AssistantAgentState", "llm_context": {"messages": list(messages)}})
    return [(turn.role, turn.text) for turn in transcript.turns]


@pytest.mark.parametrize(
    "text",
    [
        "\nRelevant memory content (in chronological order):\n1. Lives in Berlin.\n",
        "\nRelevant memory content:\n1. Lives in Berlin.\n",
        "\nRelevant memories:\n1. Lives in Berlin.\n",
        "=== CANVAS FILES ===\nFile: plan.md (rev 1):\nLives in Berlin.\n\n=== END OF CANVAS ===",
        BLOCK,
    ],
)
def test_a_system_message_with_a_known_header_is_memory(text: str) -> None:
    assert read(system(text)) == [(MEMORY, text)]
    assert read(user(text)) == [(MEMORY, text)]


def test_any_other_system_message_is_system_text() -> None:
    assert read(system("You are kind.")) == [(SYSTEM, "You are kind.")]


@pytest.mark.parametrize("header", ["Relevant memory:", "Relevant memories:", "Context from memory:", "# Memories:"])
@pytest.mark.parametrize("asked", ["User message:", "User:", "Question:", "Current user question:"])
def test_a_prompt_with_memory_before_the_words_is_parted(header: str, asked: str) -> None:
    text = f"{header}\n- Likes tea.\n\n{asked}\nBook a table.\nUser: is a word I may write.\n"
    assert read(user(text)) == [
        (MEMORY, f"{header}\n- Likes tea."),
        (HUMAN, "Book a table.\nUser: is a word I may write."),
    ]


def test_remembered_dialogue_stays_memory() -> None:
    """Without a blank line before it, only the last header can be the one of the user's words."""
    text = "Relevant memory:\n- x\nUser: I am a vegan.\nUser: Book a table."
    assert read(user(text))[-1] == (HUMAN, "Book a table.")


def test_memory_appended_to_the_words_is_parted() -> None:
    text = "Where do I live?\n\n# Memories that might help\n- Lives in Berlin.\n"
    expected = [(HUMAN, "Where do I live?"), (MEMORY, "# Memories that might help\n- Lives in Berlin.")]
    assert read(user(text)) == expected
    history = [{"role": "assistant", "name": "user", "content": text}, {"role": "user", "name": "bot", "content": "?"}]
    assert [(turn.role, turn.text) for turn in read_state(history).turns] == [*expected, (AGENT, "?")]


@pytest.mark.parametrize("message", [user, system])
def test_our_own_block_is_cut_out_of_any_message(message: Any) -> None:
    said = HUMAN if message is user else SYSTEM
    assert read(message(f"Before.\n{BLOCK}\nAfter.")) == [(said, "Before.\n"), (MEMORY, BLOCK), (said, "\nAfter.")]
    assert read(message(f"{BLOCK}\n\n")) == [(MEMORY, BLOCK)]
    cut = BLOCK[:-10]
    assert read(message(f"Before. {cut}")) == [(said, "Before. "), (MEMORY, cut)]


@pytest.mark.parametrize(
    "text",
    [
        "A relevant memory: I once lived in Porto.",
        "I have no relevant memories of it.",
        "Memories:\nmy first day in Porto, and the last.",
        "Memory:\n- 16 GB\n- DDR5",
        "What might # Memories that might help mean?",
        "What does <afterword:memory mean",
    ],
)
def test_a_person_who_writes_about_memory_stays_a_person(text: str) -> None:
    assert read(user(text)) == [(HUMAN, text)]


def test_exact_texts_of_a_memory_query_are_memory_wherever_they_stand_alone() -> None:
    query = {"source": "chef", "type": "MemoryQueryEvent", "content": [{"content": "Ravi dislikes nuts."}]}
    said = [{"source": "user", "type": "TextMessage", "content": text} for text in ("Ravi dislikes nuts.", "Hello")]
    transcript = read_state([query, *said])
    assert [turn.role for turn in transcript.turns] == [MEMORY, MEMORY, HUMAN]


def test_an_injection_that_the_thread_tells_is_not_told_again() -> None:
    query = {"source": "chef", "type": "MemoryQueryEvent", "content": [{"content": "No nuts.\nNever."}]}
    context = [
        user("Dinner?"),
        system("\nRelevant memory content:\n1. No nuts.\nNever.\n"),
        system("No nuts.\nNever."),
        system("Be kind."),
    ]
    states = {
        "chef": {"agent_state": {"llm_context": {"messages": context}}},
        "GraphManager": {"message_thread": [{"source": "user", "type": "TextMessage", "content": "Dinner?"}, query]},
    }
    turns = read_state({"agent_states": states}).turns
    assert [(turn.role, turn.text) for turn in turns] == [
        (HUMAN, "Dinner?"),
        (SYSTEM, "Be kind."),
        (MEMORY, "No nuts.\nNever."),
    ]


def test_context_is_cut_with_a_mark_and_words_never_are() -> None:
    long = "word " * 2_000
    calls = {"type": "ToolCallExecutionEvent", "source": "bot", "content": [{"content": long, "call_id": "1"}]}
    thought = {"type": "ThoughtEvent", "source": "bot", "content": long}
    for message in (calls, thought, system(long)):
        [turn] = read_state([message]).turns
        assert turn.text == f"{long[:4000]}… [6000 characters left out]"
    assert read(user(long)) == [(HUMAN, long)]


def test_what_cannot_be_stored_is_replaced_and_counted() -> None:
    transcript = read_state(
        [{"source": "us\x00er", "type": "TextMessage", "content": "a\ud800b\x00c {{ x }} {% raw %}"}]
    )
    assert transcript.turns[0].text == "a\ufffdb\ufffdc {{ x }} {% raw %}"
    assert transcript.turns[0].speaker == "us\ufffder"
    assert transcript.skipped["replaced characters"] == 3
