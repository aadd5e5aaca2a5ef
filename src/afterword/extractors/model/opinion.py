"""Ask a language model what it thinks of facts that nobody can look up: are they true, durable, useful?

An opinion, and the asked model's own: it is shown as such, apart from every measure, and nothing is decided by it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from afterword.extractors.errors import AnswerInvalid
from afterword.extractors.extractor import Usage
from afterword.extractors.model.client import Message, ModelClient
from afterword.extractors.model.prompts import load
from afterword.extractors.model.prompts.rendering import as_data

OPINION = "opinion-1"
NOTES_A_CALL = 20
"""How many notes one question holds."""

OPENING, CLOSING = "<notes>", "</notes>"
LONGEST_PASSAGE = 1200


@dataclass(frozen=True, slots=True)
class Note:
    """A fact's statement, and the passages (day, speaker, words) that it was taken from."""

    statement: str
    passages: tuple[tuple[str, str, str], ...]


class Opinion(BaseModel):
    """What the model thinks of one note."""

    model_config = ConfigDict(extra="ignore")

    note: int = Field(description="The number of the note.")
    reason: str = Field(description="Why, in at most twelve words.")
    true: bool = Field(description="Whether the words bear the note out.")
    durable: bool = Field(description="Whether it can be counted on a month later.")
    useful: bool = Field(description="Whether an assistant who knows it would act otherwise.")


class Opinions(BaseModel):
    """What the model answers: one opinion for each note."""

    model_config = ConfigDict(extra="ignore")

    opinions: list[Opinion]


class ModelOpinion:
    """Asks for opinions on notes. The client is shared; whoever made it closes it."""

    def __init__(self, client: ModelClient, *, prompt: str = OPINION) -> None:
        self._client = client
        self._prompt = load(prompt)

    @property
    def version(self) -> str:
        """Model and prompt, for example `model:gpt-4o-mini:opinion-1`."""
        return f"model:{self._client.settings.model}:{self._prompt.id}"

    async def of(self, notes: Sequence[Note]) -> tuple[list[Opinion], Usage]:
        """Return one opinion for each note, in their order; no notes, no question.

        Raises ValueError for more than `NOTES_A_CALL` notes, `AnswerInvalid` where a note was left out, made up or
        answered more than once, twice in a row, and any other `ExtractionError` of the client.
        """
        if len(notes) > NOTES_A_CALL:
            raise ValueError(f"{len(notes)} notes; at most {NOTES_A_CALL} fit one question")
        if not notes:
            return [], Usage()
        messages: list[Message] = [
            {"role": "system", "content": self._prompt.text},
            {"role": "user", "content": shown(notes)},
        ]
        answer, usage = await self._client.ask(messages, Opinions)
        if not _is_whole(answer, len(notes)):
            again = f"Answer again, with every number from 1 to {len(notes)} exactly once."
            messages += [
                {"role": "assistant", "content": answer.model_dump_json()},
                {"role": "user", "content": again},
            ]
            answer, more = await self._client.ask(messages, Opinions)
            usage += more
            if not _is_whole(answer, len(notes)):
                raise AnswerInvalid(
                    f"{self._client.settings.place}: notes were left out or answered twice; try a more capable model"
                )
        return sorted(answer.opinions, key=lambda one: one.note), usage


def shown(notes: Sequence[Note]) -> str:
    """Return the notes as a delimited list, in which no text can close it or pass for another note."""
    lines = [OPENING]
    for number, note in enumerate(notes, 1):
        lines.append(f"{number}. {as_data(note.statement)}")
        for day, speaker, words in note.passages:
            cut = words if len(words) <= LONGEST_PASSAGE else f"{words[:LONGEST_PASSAGE]}…"
            lines.append(f"   {day}, {as_data(speaker)}: {as_data(cut)}")
    return "\n".join([*lines, CLOSING])


def _is_whole(answer: Opinions, count: int) -> bool:
    return Counter(one.note for one in answer.opinions) == Counter(range(1, count + 1))
