"""The extractor that asks a language model. Of the window alone: no store, no clock, no other session."""

from __future__ import annotations

from collections.abc import Sequence

from afterword.extractors.candidates import Answer
from afterword.extractors.clients import Message, ModelClient
from afterword.extractors.extractor import Extraction, Rejection, Window
from afterword.extractors.metering import Question
from afterword.extractors.prompts import Prompt, load, render
from afterword.extractors.prompts.rendering import neutralised

EXTRACT = "extract-2"
REPAIR = "repair-1"


class ModelExtractor:
    """Proposes what a language model finds in a window: one question a window, one more to mend what was refused.

    The client is shared with whoever else asks the same endpoint; whoever made it closes it.
    """

    def __init__(self, client: ModelClient, *, extract: str = EXTRACT, repair: str = REPAIR) -> None:
        self._client = client
        self._extract, self._repair = load(extract), load(repair)

    @property
    def version(self) -> str:
        """Model and prompts, for example `model:gpt-4o-mini:extract-1+repair-1`."""
        return f"model:{self._client.settings.model}:{self._extract.id}+{self._repair.id}"

    async def extract(self, window: Window) -> Extraction:
        """Return the candidates that the model finds in the window.

        Raises an `ExtractionError` where no answer was had: that is never the same as "no facts".
        """
        return await self._ask(opening(self._extract, window))

    async def repair(self, window: Window, rejections: Sequence[Rejection]) -> Extraction:
        """Return mended candidates in place of the rejected ones; without any, nothing is asked.

        Raises an `ExtractionError` where no answer was had.
        """
        if not rejections:
            return Extraction(())
        messages = [*opening(self._extract, window), *objection(self._repair, rejections)]
        return await self._ask(messages, purpose="repair")

    def foreseen(self, window: Window) -> Question:
        """Return what asking for the facts of the window would be, without asking."""
        return self._client.question(opening(self._extract, window), Answer, "extraction")

    async def _ask(self, messages: Sequence[Message], purpose: str = "extraction") -> Extraction:
        answer, usage = await self._client.ask(messages, Answer, purpose=purpose)
        return Extraction(tuple(answer.facts), usage)


def opening(prompt: Prompt, window: Window) -> list[Message]:
    """Return the messages that ask for the facts of a window."""
    return [{"role": "system", "content": prompt.text}, {"role": "user", "content": render(window)}]


def objection(prompt: Prompt, rejections: Sequence[Rejection]) -> list[Message]:
    """Return the messages that show the refused candidates as the model's own answer, and why they were refused.

    They follow `opening`, so that a provider's prompt cache serves the long part a second time.
    """
    answer = Answer(facts=[rejection.candidate for rejection in rejections])
    reasons = [f"{number}. {item.reason}: {neutralised(item.detail)}" for number, item in enumerate(rejections, 1)]
    return [
        {"role": "assistant", "content": answer.model_dump_json(exclude_defaults=True)},
        {"role": "user", "content": prompt.text.replace("{refusals}", "\n".join(reasons))},
    ]
