"""Ask a real agent the questions of scenarios, and compare what different systems tell it.

The agent gets its memory, the turns that a plain search finds, all turns, or nothing. The plain search is BM25 over all
turns. It returns each turn with the one before it, in as many tokens as a memory may take.

The answers are written to pages for graders, who see question, reference and answers in shuffled order, without
formatting and without the names of the systems. Replies of the model are recorded in a file, and replayed from it.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_core.models import ChatCompletionClient, CreateResult, LLMMessage, RequestUsage
from autogen_ext.models.replay import ReplayChatCompletionClient

from afterword.agents.memory import FactMemory
from afterword.errors import ArgumentInvalid
from afterword.evaluation.scenarios.scenario import Question, Scenario, Session
from afterword.facts.assertions import digest
from afterword.facts.scopes import Scope
from afterword.facts.words import lower_without_stop_words
from afterword.recall.questions import is_about_the_past
from afterword.recall.tokens import estimated_token_count
from afterword.store.database.engine import Store

SYSTEMS = ("memory", "history", "nothing")
"""The systems that are asked by default. Others are `turns`, and the names of other memories whose texts are given."""
INSTRUCTIONS = (
    "You are an assistant. Answer the question in one or two sentences, from what you know of earlier conversations. "
    "Say so if you do not know."
)
SPOKEN = ("user", "assistant")
CONCURRENCY = 16
"""How many questions are asked at the same time."""
_WHEN = re.compile(r"\b(?:when|since|until|which day|what day|date|wann|cuándo|quand|quando|wanneer)\b", re.IGNORECASE)
_FORMATTING = re.compile(r"[*_`#>]+|^\s*[-•]\s+", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class AgentAnswer:
    """The answer of one system to a question of a scenario.

    `tokens_told` counts what the model is sent beyond the instructions and the question, including the date.
    """

    scenario: str
    question: str
    reference: str
    kind: str
    system: str
    answer: str
    tokens_told: int


class RecordedReplies:
    """Recorded replies of a model, kept in a file. Missing replies are requested from `model`, if given, and added."""

    def __init__(self, path: Path, model: ChatCompletionClient | None) -> None:
        self._path, self._model = path, model
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self._replies: dict[str, str] = {row["key"]: row["reply"] for row in map(json.loads, lines)}

    async def recorded_or_new_reply(self, messages: Sequence[LLMMessage], **options: Any) -> str:
        """Return the recorded reply to these messages, else that of the model. Raises `ArgumentInvalid` without one."""
        key = digest([[type(message).__name__, str(message.content)] for message in messages])
        if key not in self._replies:
            if self._model is None:
                raise ArgumentInvalid(f"{self._path} holds no reply to this question; record it with a model")
            reply = str((await self._model.create(messages, **options)).content)
            self._replies[key] = reply
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"key": key, "reply": reply}, ensure_ascii=False) + "\n")
        return self._replies[key]


class RecordedClient(ReplayChatCompletionClient):
    """A model client for one agent, which takes its answers from `replies`."""

    def __init__(self, replies: RecordedReplies) -> None:
        super().__init__([""])
        self._replies = replies
        self.last_request: Sequence[LLMMessage] = ()

    async def create(self, messages: Sequence[LLMMessage], **options: Any) -> CreateResult:
        """Return the reply to these messages. Raises `ArgumentInvalid` if no reply is recorded and no model is set."""
        self.last_request = list(messages)
        content = await self._replies.recorded_or_new_reply(messages, **options)
        usage = RequestUsage(prompt_tokens=0, completion_tokens=0)
        return CreateResult(content=content, finish_reason="stop", usage=usage, cached=True)


async def ask_scenarios(
    scenarios: Sequence[Scenario],
    scopes: Mapping[str, Scope],
    store: Store,
    replies: RecordedReplies,
    *,
    systems: Sequence[str] = SYSTEMS,
    other_memories: Mapping[str, Mapping[str, str]] | None = None,
    budget_tokens: int = 2_000,
) -> list[AgentAnswer]:
    """Return the answers of each system to every question. The sessions of the scenarios must be in the store.

    A memory and a plain search for turns may take `budget_tokens`. `other_memories` holds, by the name of another
    memory, its text for each question.
    """
    limit = asyncio.Semaphore(CONCURRENCY)
    other_memories = other_memories or {}

    async def ask(scenario: Scenario, question: Question, system: str) -> AgentAnswer:
        async with limit:
            text = other_memories[system][question.question] if system in other_memories else None
            posed = _PosedQuestion(scenario, question, system, scopes[scenario.id], budget_tokens, text)
            return await _ask_agent(posed, store, RecordedClient(replies))

    questions = [(scenario, question) for scenario in scenarios for question in scenario.gold.questions]
    names = (*systems, *other_memories)
    return await asyncio.gather(*(ask(scenario, asked, system) for scenario, asked in questions for system in names))


@dataclass(frozen=True, slots=True)
class _PosedQuestion:
    """A question of a scenario to one system. If the system is another memory, `other_memory_text` is its text."""

    scenario: Scenario
    question: Question
    system: str
    scope: Scope
    budget_tokens: int
    other_memory_text: str | None

    @property
    def asked_at(self) -> datetime:
        """The instant at which the question is asked."""
        ended = max(session.ended_at for session in self.scenario.sessions) + timedelta(hours=1)
        day = self.question.as_of
        return datetime.combine(datetime.fromisoformat(day).date(), time(12), UTC) if day else ended

    def earlier_conversations(self) -> str:
        """Return the text about earlier conversations for a system other than `memory`."""
        if self.other_memory_text is not None:
            return self.other_memory_text
        earlier = [session for session in self.scenario.sessions if session.started_at <= self.asked_at]
        if self.system == "turns":
            return _found_turns(earlier, self.question.question, self.budget_tokens)
        return _history_text(earlier) if self.system == "history" else ""


async def _ask_agent(posed: _PosedQuestion, store: Store, client: RecordedClient) -> AgentAnswer:
    question = posed.question
    result = await _agent(posed, store, client).run(task=question.question)
    sent = sum(estimated_token_count(str(message.content)) for message in client.last_request)
    alone = estimated_token_count(INSTRUCTIONS) + estimated_token_count(question.question)
    return AgentAnswer(
        scenario=posed.scenario.id,
        question=question.question,
        reference=question.answer,
        kind=question_kind(question),
        system=posed.system,
        answer=str(getattr(result.messages[-1], "content", "")),
        tokens_told=max(sent - alone, 0),
    )


def _agent(posed: _PosedQuestion, store: Store, client: RecordedClient) -> AssistantAgent:
    at = posed.asked_at
    memory = FactMemory(
        scope=posed.scope, store=store, clock=lambda: at, timeout_s=60, budget_tokens=posed.budget_tokens
    )
    system_message = f"{INSTRUCTIONS} Today is {at.date().isoformat()}."
    if earlier := posed.earlier_conversations():
        system_message = f"{system_message}\n\nEarlier conversations:\n\n{earlier}"
    memories = [memory] if posed.system == "memory" else None
    return AssistantAgent("assistant", client, memory=memories, system_message=system_message)


def question_kind(question: Question) -> str:
    """Return the kind of a question: "several facts", "when", "before" or "now"."""
    if len(question.needs) > 1:
        return "several facts"
    if _WHEN.search(question.question):
        return "when"
    return "before" if question.as_of or is_about_the_past(question.question) else "now"


def write_grading_pages(answers: Sequence[AgentAnswer], folder: Path, *, seed: int = 0) -> None:
    """Write `answers.json`, `pages.md` for graders, and `key.json`, which names the system behind each letter."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [asdict(answer) for answer in answers]
    (folder / "answers.json").write_text(json.dumps(rows, ensure_ascii=False, indent=1), encoding="utf-8")
    lines = ["# Answers to grade", "", "Say of each answer whether it is right: it says what the reference says.", ""]
    key: dict[str, dict[str, str]] = {}
    for number, shuffled in enumerate(_shuffled_by_question(answers, random.Random(seed)), 1):
        lettered = {chr(ord("A") + place): answer for place, answer in enumerate(shuffled)}
        lines += [f"## {number}. {shuffled[0].question}", "", f"Reference: {shuffled[0].reference}", ""]
        lines += [*(f"{letter}: {_without_formatting(answer.answer)}" for letter, answer in lettered.items()), ""]
        key[str(number)] = {letter: answer.system for letter, answer in lettered.items()}
    (folder / "pages.md").write_text("\n".join(lines), encoding="utf-8")
    (folder / "key.json").write_text(json.dumps(key, indent=1), encoding="utf-8")


def _shuffled_by_question(answers: Sequence[AgentAnswer], shuffle: random.Random) -> Iterator[list[AgentAnswer]]:
    """Yield the answers to each question. The questions are shuffled, and so are the answers to each of them."""
    by_question: dict[tuple[str, str], list[AgentAnswer]] = {}
    for answer in answers:
        by_question.setdefault((answer.scenario, answer.question), []).append(answer)
    groups = list(by_question.values())
    shuffle.shuffle(groups)
    for group in groups:
        yield shuffle.sample(group, len(group))


def _without_formatting(answer: str) -> str:
    return " ".join(_FORMATTING.sub(" ", answer).split())


def _history_text(sessions: Sequence[Session]) -> str:
    return "\n\n".join(
        "\n".join(
            [
                f"Conversation of {session.started_at.date().isoformat()}",
                *(
                    f"{message.source or message.role}: {message.content}"
                    for message in session.messages
                    if message.role in SPOKEN
                ),
            ]
        )
        for session in sessions
    )


def _found_turns(sessions: Sequence[Session], question: str, budget_tokens: int) -> str:
    """Return the turns that a plain search finds (BM25 of SQLite), each with the turn before it, in order of time."""
    turns = [
        f"{session.started_at.date().isoformat()} {message.source or message.role}: {message.content}"
        for session in sessions
        for message in session.messages
        if message.role in SPOKEN
    ]
    with_turns_before = (number for place in _matching_places(turns, question) for number in (place, place - 1))
    chosen, tokens = set[int](), 0
    for number in dict.fromkeys(number for number in with_turns_before if number >= 0):
        tokens += estimated_token_count(turns[number])
        if tokens > budget_tokens:
            break
        chosen.add(number)
    return "\n".join(turns[number] for number in sorted(chosen))


def _matching_places(turns: Sequence[str], question: str) -> list[int]:
    """Return the indexes of the turns that contain a word of the question, best match first."""
    query = " OR ".join(f'"{word}"' for word in lower_without_stop_words(question).split())
    if not query:
        return []
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE VIRTUAL TABLE turns USING fts5(words, tokenize='porter')")
        connection.executemany("INSERT INTO turns (rowid, words) VALUES (?, ?)", enumerate(turns))
        ranked = connection.execute("SELECT rowid FROM turns WHERE turns MATCH ? ORDER BY bm25(turns)", [query])
        return [place for (place,) in ranked]
