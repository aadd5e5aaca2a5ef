"""Ask a language model about current facts that match no gold fact: are they true, durable and useful?

This is the model's own opinion. It is shown apart from the scores and changes none of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from afterword.evaluation.scenarios.scenario import Scenario, Story
from afterword.evaluation.scorer import unmatched_facts
from afterword.extractors.errors import AnswerInvalid, ExtractionError
from afterword.extractors.extractor import Usage
from afterword.extractors.model.client import Message, ModelClient
from afterword.extractors.model.prompts import load_prompt
from afterword.extractors.model.prompts.rendering import as_data
from afterword.facts.fact import Fact
from afterword.privacy.policy import Privacy

OPINION = "opinion-1"
NOTES_A_CALL = 20
"""How many notes one request holds."""

OPENING, CLOSING = "<notes>", "</notes>"
LONGEST_PASSAGE = 1200


@dataclass(frozen=True, slots=True)
class Note:
    """A fact's statement, and the passages (day, speaker, words) that it was taken from."""

    statement: str
    passages: tuple[tuple[str, str, str], ...]


# Names, docstrings and descriptions of the next two classes are sent to the model. They are a part of the prompt.
class Opinion(BaseModel):
    """What the model thinks of one note."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="ignore")

    note: int = Field(description="The number of the note.")
    reason: str = Field(description="Why, in at most twelve words.")
    true: bool = Field(description="Whether the words bear the note out.")
    durable: bool = Field(description="Whether it can be counted on a month later.")
    useful: bool = Field(description="Whether an assistant who knows it would act otherwise.")


class Opinions(BaseModel):
    """What the model answers: one opinion for each note."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="ignore")

    opinions: list[Opinion]


@dataclass(frozen=True, slots=True)
class OpinionReport:
    """A model's opinions on the facts of one system.

    `by_scenario` lists (statement, opinion) for each scenario. `asked` counts all facts, also those whose request
    failed. `failures` lists (scenario, reason).
    """

    version: str
    asked: int
    by_scenario: Mapping[str, Sequence[tuple[str, Opinion]]]
    failures: Sequence[tuple[str, str]] = ()
    usage: Usage = field(default_factory=Usage)

    @property
    def opinions_of_all_scenarios(self) -> list[Opinion]:
        """The opinions of all scenarios."""
        return [opinion for pairs in self.by_scenario.values() for _, opinion in pairs]


class ModelOpinion:
    """Asks a model for its opinion on notes. The caller closes the client.

    `version` is model and prompt, for example `model:gpt-4o-mini:opinion-1`.
    """

    def __init__(self, client: ModelClient) -> None:
        self._client = client
        self.version: str = f"model:{client.settings.model}:{OPINION}"

    async def opinions_on(self, notes: Sequence[Note]) -> tuple[list[Opinion], Usage]:
        """Return one opinion for each note, in their order. Without notes no request is sent.

        An answer that leaves out, invents or repeats a note is requested once more. Raises `AnswerInvalid` if this
        fails too, other `ExtractionError`s of the client, and ValueError for more than `NOTES_A_CALL` notes.
        """
        if len(notes) > NOTES_A_CALL:
            raise ValueError(f"{len(notes)} notes; at most {NOTES_A_CALL} fit one question")
        if not notes:
            return [], Usage()
        messages: list[Message] = [
            {"role": "system", "content": load_prompt(OPINION)},
            {"role": "user", "content": notes_block(notes)},
        ]
        answer, usage = await self._client.ask(messages, Opinions)
        if not _is_complete(answer, len(notes)):
            objection = f"Answer again, with every number from 1 to {len(notes)} exactly once."
            messages += [
                {"role": "assistant", "content": answer.model_dump_json()},
                {"role": "user", "content": objection},
            ]
            answer, second_usage = await self._client.ask(messages, Opinions)
            usage += second_usage
            if not _is_complete(answer, len(notes)):
                raise AnswerInvalid(
                    f"{self._client.settings.place}: notes were left out or answered twice; try a more capable model"
                )
        return sorted(answer.opinions, key=lambda opinion: opinion.note), usage


async def ask_opinions(
    model: ModelOpinion, scenarios: Sequence[Scenario], facts: Mapping[str, Sequence[Fact]]
) -> OpinionReport:
    """Ask for an opinion on every current fact that matches no gold fact. The model does not see the gold."""
    by_scenario: dict[str, list[tuple[str, Opinion]]] = {}
    failures: list[tuple[str, str]] = []
    usage, asked = Usage(), 0
    for scenario in scenarios:
        notes = [_note(fact, scenario.story()) for fact in unmatched_facts(scenario, facts[scenario.id])]
        asked += len(notes)
        for start in range(0, len(notes), NOTES_A_CALL):
            batch = notes[start : start + NOTES_A_CALL]
            try:
                opinions, batch_usage = await model.opinions_on(batch)
            except ExtractionError as error:
                failures.append((scenario.id, f"{type(error).__name__}: {error}"))
                continue
            usage += batch_usage
            statements = (note.statement for note in batch)
            by_scenario.setdefault(scenario.id, []).extend(zip(statements, opinions, strict=True))
    return OpinionReport(model.version, asked, by_scenario, failures, usage)


def notes_block(notes: Sequence[Note]) -> str:
    """Return the notes as a delimited list, in which no text can close the list or look like another note."""
    lines = [OPENING]
    for number, note in enumerate(notes, 1):
        lines.append(f"{number}. {as_data(note.statement)}")
        for day, speaker, words in note.passages:
            shortened = words if len(words) <= LONGEST_PASSAGE else f"{words[:LONGEST_PASSAGE]}…"
            lines.append(f"   {day}, {as_data(speaker)}: {as_data(shortened)}")
    return "\n".join([*lines, CLOSING])


def _is_complete(answer: Opinions, count: int) -> bool:
    return Counter(opinion.note for opinion in answer.opinions) == Counter(range(1, count + 1))


def _note(fact: Fact, story: Story) -> Note:
    """Return a fact with the whole messages that it quotes, because a quote alone may hide that it was a joke.

    Secrets in the messages are masked, as in everything that is sent to a model.
    """
    masking = Privacy().new_masking()
    passages: dict[tuple[str, str, str], None] = {}
    for evidence in fact.evidence:
        quoted = [
            (f"{session.started_at:%Y-%m-%d}", message.source, message.content)
            for session, message in story.messages_with(evidence.quote, evidence.session_id)
        ]
        for day, speaker, words in quoted or [(f"{fact.said_at:%Y-%m-%d}", evidence.speaker or "", evidence.quote)]:
            passages[day, speaker, masking.mask_text(words)] = None
    return Note(fact.statement, tuple(passages))
