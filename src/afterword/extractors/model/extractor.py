"""The extractor that asks a language model. Of the window alone: no store, no clock, no other session."""

from __future__ import annotations

from collections.abc import Sequence

from afterword.extractors.candidates import Answer
from afterword.extractors.extractor import Extraction, Rejection, Window
from afterword.extractors.model.client import Message, ModelClient
from afterword.extractors.model.metering import Question
from afterword.extractors.model.prompts import Prompt, load_prompt, render
from afterword.extractors.model.prompts.rendering import neutralised

EXTRACT = "extract-2"
REPAIR = "repair-1"
IN_ONE_LANGUAGE = (
    "Write every statement, subject and value in {}, whatever the language of the session; names stay as they are, and "
    "what you cite stays as it was said."
)


class ModelExtractor:
    """Proposes what a language model finds in a window: one question a window, one more to mend what was refused.

    The client is shared with whoever else asks the same endpoint; whoever made it closes it. Statements are in the
    session's own language, or in `language` ("English"), where one memory serves sessions in several.
    """

    def __init__(
        self, client: ModelClient, *, extract: str = EXTRACT, repair: str = REPAIR, language: str | None = None
    ) -> None:
        self._client, self._language = client, language
        self._extract, self._repair = load_prompt(extract), load_prompt(repair)

    @property
    def version(self) -> str:
        """Model and prompts, for example `model:gpt-4o-mini:extract-2+repair-1`, and the language where one is set."""
        told = f"+{self._language}" if self._language else ""
        return f"model:{self._client.settings.model}:{self._extract.id}+{self._repair.id}{told}"

    async def extract(self, window: Window) -> Extraction:
        """Return the candidates that the model finds in the window.

        Raises an `ExtractionError` where no answer was had: that is never the same as "no facts".
        """
        return await self._ask(opening(self._extract, window, self._language))

    async def repair(self, window: Window, rejections: Sequence[Rejection]) -> Extraction:
        """Return mended candidates in place of the rejected ones; without any, nothing is asked.

        Raises an `ExtractionError` where no answer was had.
        """
        if not rejections:
            return Extraction(())
        messages = [*opening(self._extract, window, self._language), *objection(self._repair, rejections)]
        return await self._ask(messages, purpose="repair")

    def foreseen(self, window: Window) -> Question:
        """Return what asking for the facts of the window would be, without asking."""
        return self._client.question(opening(self._extract, window, self._language), Answer, "extraction")

    async def _ask(self, messages: Sequence[Message], purpose: str = "extraction") -> Extraction:
        answer, usage = await self._client.ask(messages, Answer, purpose=purpose)
        return Extraction(tuple(answer.facts), usage)


def opening(prompt: Prompt, window: Window, language: str | None = None) -> list[Message]:
    """Return the messages that ask for the facts of a window, told in the session's language or in the one given."""
    told = f"{prompt.text}\n\n{IN_ONE_LANGUAGE.format(language)}" if language else prompt.text
    return [{"role": "system", "content": told}, {"role": "user", "content": render(window)}]


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
