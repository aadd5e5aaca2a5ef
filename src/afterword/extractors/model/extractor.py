"""The extractor that asks a language model. It uses nothing but the window: no store, no clock, no other session."""

from __future__ import annotations

from collections.abc import Sequence

from afterword.extractors.agent_findings import FindingsAnswer, FindingsExtraction
from afterword.extractors.candidates import Answer
from afterword.extractors.extractor import Extraction, Rejection, Window
from afterword.extractors.model.client import Message, ModelClient
from afterword.extractors.model.metering import ModelRequest
from afterword.extractors.model.prompts import load_prompt, render_window
from afterword.extractors.model.prompts.rendering import neutralised_text, shown_names

EXTRACT_PROMPT = "extract-4"
EXTRACT_EVERYTHING_PROMPT = "extract_everything-2"
"""A prompt that asks for everything that people tell, instead of the few facts that matter later."""
REPAIR_PROMPT = "repair-1"
FINDINGS_PROMPT = "findings-1"
IN_ONE_LANGUAGE = (
    "Write every statement, subject and value in {}, whatever the language of the session; names stay as they are, and "
    "what you cite stays as it was said."
)


class ModelExtractor:
    """Proposes the facts that a language model finds in a window, and repairs refused candidates in a second request.

    The client may be shared and is not closed here. Statements are in the language of the session, or in `language`
    (for example "English") if one memory serves sessions in several languages. `version` names the model, the prompts,
    and the language if one is set, for example `model:gpt-4o-mini:extract-4+repair-1`. `findings_version` names the
    prompt for what agents found instead.
    """

    def __init__(
        self,
        client: ModelClient,
        *,
        extract: str = EXTRACT_PROMPT,
        repair: str = REPAIR_PROMPT,
        language: str | None = None,
    ) -> None:
        self._client, self._language = client, language
        self._extract, self._repair = load_prompt(extract), load_prompt(repair)
        model, ending = f"model:{client.settings.model}", f"+{language}" if language else ""
        self.version: str = f"{model}:{extract}+{repair}{ending}"
        self.findings_version: str = f"{model}:{FINDINGS_PROMPT}{ending}"

    async def extract(self, window: Window) -> Extraction:
        """Return the candidates that the model finds in the window.

        Raises an `ExtractionError` if there was no answer, which is never the same as "no facts".
        """
        return await self._ask(extraction_messages(self._extract, window, self._language))

    async def repair(self, window: Window, rejections: Sequence[Rejection]) -> Extraction:
        """Return repaired candidates for the rejected ones. If there are none, no request is sent.

        Raises an `ExtractionError` if there was no answer.
        """
        if not rejections:
            return Extraction(())
        answer = Answer(facts=[rejection.candidate for rejection in rejections])
        reasons = [
            f"{number}. {rejection.reason}: {neutralised_text(rejection.detail)}"
            for number, rejection in enumerate(rejections, 1)
        ]
        # The request begins like the first one, so that the provider's prompt cache serves the long part again. The
        # rejected candidates follow as the answer of the model.
        messages: list[Message] = [
            *extraction_messages(self._extract, window, self._language),
            {"role": "assistant", "content": answer.model_dump_json(exclude_defaults=True)},
            {"role": "user", "content": self._repair.replace("{refusals}", "\n".join(reasons))},
        ]
        return await self._ask(messages, purpose="repair")

    async def extract_findings(self, window: Window, agents: Sequence[str], *, advice: bool) -> FindingsExtraction:
        """Return what these agents found in the window and, with `advice`, what they advised.

        Raises an `ExtractionError` if there was no answer.
        """
        asked_for = "findings and advice" if advice else "findings only, no advice"
        head = f"Agents: {shown_names(agents)}. Write down: {asked_for}."
        if self._language:
            head = f"{head} Write every statement and topic in {self._language}; names stay as they are."
        messages: list[Message] = [
            {"role": "system", "content": load_prompt(FINDINGS_PROMPT)},
            {"role": "user", "content": f"{head}\n{render_window(window)}"},
        ]
        answer, usage = await self._client.ask(messages, FindingsAnswer, purpose="findings")
        return FindingsExtraction(tuple(answer.findings), usage)

    def planned_request(self, window: Window) -> ModelRequest:
        """Return a description of the request that `extract` would send for the window."""
        return self._client.planned_request(
            extraction_messages(self._extract, window, self._language), Answer, "extraction"
        )

    async def _ask(self, messages: Sequence[Message], purpose: str = "extraction") -> Extraction:
        answer, usage = await self._client.ask(messages, Answer, purpose=purpose)
        return Extraction(tuple(answer.facts), usage, tuple(answer.secrets), frozenset(answer.off_record))


def extraction_messages(prompt: str, window: Window, language: str | None = None) -> list[Message]:
    """Return the messages that ask for the facts of a window, in the session's language or in `language`."""
    instructions = f"{prompt}\n\n{IN_ONE_LANGUAGE.format(language)}" if language else prompt
    return [{"role": "system", "content": instructions}, {"role": "user", "content": render_window(window)}]
