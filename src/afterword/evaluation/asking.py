"""Ask the questions of scenarios of a real agent: with its memory, with the whole history, and with neither.

The answers are written to pages for graders, who see question, reference and answers in shuffled order, without
formatting and without the names of the systems. Replies of the model are kept in a file, and played back from it.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any, Literal

from autogen_agentchat.agents import AssistantAgent
from autogen_core.models import ChatCompletionClient, CreateResult, LLMMessage, RequestUsage
from autogen_ext.models.replay import ReplayChatCompletionClient

from afterword.agents.memory import FactMemory
from afterword.errors import ArgumentInvalid
from afterword.evaluation.scenarios.scenario import Question, Scenario, Session
from afterword.facts.assertions import digest
from afterword.facts.scopes import Scope
from afterword.recall.past_questions import is_about_the_past
from afterword.recall.tokens import token_count
from afterword.store.database.engine import Store

AskedSystem = Literal["memory", "history", "nothing"]
SYSTEMS: tuple[AskedSystem, ...] = ("memory", "history", "nothing")
INSTRUCTIONS = (
    "You are an assistant. Answer the question in one or two sentences, from what you know of earlier conversations. "
    "Say so if you do not know."
)
# How many questions are asked at the same time.
CONCURRENCY = 16
_WHEN = re.compile(r"\b(?:when|since|until|which day|what day|date|wann|cuándo|quand|quando|wanneer)\b", re.IGNORECASE)
_FORMATTING = re.compile(r"[*_`#>]+|^\s*[-•]\s+", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class AgentAnswer:
    """One answer: to which question of which scenario, by which system, and how much the system was told."""

    scenario: str
    question: str
    reference: str
    kind: str
    system: AskedSystem
    answer: str
    tokens_told: int


class RecordedReplies:
    """Replies of a model, kept in a file. What the file lacks is asked of `model`, if there is one, and added."""

    def __init__(self, path: Path, model: ChatCompletionClient | None) -> None:
        self._path, self._model = path, model
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self._replies: dict[str, str] = {row["key"]: row["reply"] for row in map(json.loads, lines)}

    async def reply(self, messages: Sequence[LLMMessage], **options: Any) -> str:
        """Return the recorded reply to these messages, else the model's. Raises `ArgumentInvalid` without either."""
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
    """The model client of one agent: its replies are those of `replies`, and `shown` is what the agent last sent."""

    def __init__(self, replies: RecordedReplies) -> None:
        super().__init__([""])
        self._replies = replies
        self.shown: Sequence[LLMMessage] = ()

    async def create(self, messages: Sequence[LLMMessage], **options: Any) -> CreateResult:
        """Return the reply to these messages. Raises `ArgumentInvalid` where there is none and no model."""
        self.shown = list(messages)
        content = await self._replies.reply(messages, **options)
        usage = RequestUsage(prompt_tokens=0, completion_tokens=0)
        return CreateResult(content=content, finish_reason="stop", usage=usage, cached=True)


async def ask_scenarios(
    scenarios: Sequence[Scenario], scopes: Mapping[str, Scope], store: Store, replies: RecordedReplies
) -> list[AgentAnswer]:
    """Return the answers of every system to every question of the scenarios, whose sessions are in the store."""
    limit = asyncio.Semaphore(CONCURRENCY)

    async def ask(scenario: Scenario, question: Question, system: AskedSystem) -> AgentAnswer:
        async with limit:
            return await _ask(scenario, question, system, scopes[scenario.id], store, RecordedClient(replies))

    return await asyncio.gather(
        *(
            ask(scenario, question, system)
            for scenario in scenarios
            for question in scenario.gold.questions
            for system in SYSTEMS
        )
    )


async def _ask(
    scenario: Scenario, question: Question, system: AskedSystem, scope: Scope, store: Store, client: RecordedClient
) -> AgentAnswer:
    ended = max(session.ended_at for session in scenario.sessions)
    at = _noon(question.as_of) if question.as_of else ended + timedelta(hours=1)
    history = _history([session for session in scenario.sessions if session.started_at <= at])
    memory = [FactMemory(scope=scope, store=store, clock=lambda: at, timeout_s=60)] if system == "memory" else []
    system_message = f"{INSTRUCTIONS} Today is {at.date().isoformat()}."
    if system == "history":
        system_message = f"{system_message}\n\nEarlier conversations:\n\n{history}"
    agent = AssistantAgent("assistant", client, memory=memory or None, system_message=system_message)
    result = await agent.run(task=question.question)
    shown = sum(token_count(str(message.content)) for message in client.shown)
    alone = token_count(INSTRUCTIONS) + token_count(question.question)
    return AgentAnswer(
        scenario=scenario.id,
        question=question.question,
        reference=question.answer,
        kind=kind_of(question),
        system=system,
        answer=str(getattr(result.messages[-1], "content", "")),
        tokens_told=max(shown - alone, 0),
    )


def kind_of(question: Question) -> str:
    """Return the kind of a question: several facts, when, before, or now."""
    if len(question.needs) > 1:
        return "several facts"
    if _WHEN.search(question.question):
        return "when"
    return "before" if question.as_of or is_about_the_past(question.question) else "now"


def write_pages(answers: Sequence[AgentAnswer], folder: Path, *, seed: int = 0) -> None:
    """Write `answers.json`, `pages.md` for graders, and `key.json`, which says whose answer each letter is."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [asdict(answer) for answer in answers]
    (folder / "answers.json").write_text(json.dumps(rows, ensure_ascii=False, indent=1), encoding="utf-8")
    by_question: dict[tuple[str, str], list[AgentAnswer]] = {}
    for answer in answers:
        by_question.setdefault((answer.scenario, answer.question), []).append(answer)
    order = list(by_question.values())
    shuffle = random.Random(seed)
    shuffle.shuffle(order)
    lines = ["# Answers to grade", "", "Say of each answer whether it is right: it says what the reference says.", ""]
    key: dict[str, dict[str, str]] = {}
    for number, group in enumerate(order, 1):
        shuffled = shuffle.sample(group, len(group))
        lines += [f"## {number}. {group[0].question}", "", f"Reference: {group[0].reference}", ""]
        letters = [chr(ord("A") + place) for place in range(len(shuffled))]
        lines += [f"{letter}: {_plain(each.answer)}" for letter, each in zip(letters, shuffled, strict=True)]
        lines.append("")
        key[str(number)] = {letter: each.system for letter, each in zip(letters, shuffled, strict=True)}
    (folder / "pages.md").write_text("\n".join(lines), encoding="utf-8")
    (folder / "key.json").write_text(json.dumps(key, indent=1), encoding="utf-8")


def _plain(answer: str) -> str:
    """Return an answer on one line without formatting."""
    return " ".join(_FORMATTING.sub(" ", answer).split())


def _history(sessions: Sequence[Session]) -> str:
    spoken = ("user", "assistant")
    return "\n\n".join(
        "\n".join(
            [
                f"Conversation of {session.started_at.date().isoformat()}",
                *(
                    f"{message.source or message.role}: {message.content}"
                    for message in session.messages
                    if message.role in spoken
                ),
            ]
        )
        for session in sessions
    )


def _noon(day: str) -> datetime:
    return datetime.combine(datetime.fromisoformat(day).date(), time(12), UTC)
