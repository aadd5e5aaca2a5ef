"""Asking a language model what agents found. It sees the window alone, and a prompt of its own."""

from __future__ import annotations

import json
from collections.abc import Sequence

from afterword.extractors.agent_findings import FindingsAnswer, FindingsExtraction
from afterword.extractors.extractor import Window
from afterword.extractors.model.client import Message, ModelClient
from afterword.extractors.model.prompts import Prompt, load_prompt, render
from afterword.extractors.model.prompts.rendering import speaker_label

FINDINGS = "findings-1"
PURPOSE = "findings"


async def ask_findings(
    client: ModelClient, window: Window, agents: Sequence[str], *, advice: bool, language: str | None = None
) -> FindingsExtraction:
    """Return what the model says these agents found in a window, with `advice` also what they advised.

    Raises an `ExtractionError` if there was no answer.
    """
    messages = finding_messages(load_prompt(FINDINGS), window, agents, advice=advice, language=language)
    answer, usage = await client.ask(messages, FindingsAnswer, purpose=PURPOSE)
    return FindingsExtraction(tuple(answer.findings), usage)


def finding_messages(
    prompt: Prompt, window: Window, agents: Sequence[str], *, advice: bool, language: str | None = None
) -> list[Message]:
    """Return the messages that ask what these agents found in a window."""
    names = ", ".join(json.dumps(speaker_label(name), ensure_ascii=False) for name in agents)
    asked_for = "findings and advice" if advice else "findings only, no advice"
    head = f"Agents: {names}. Write down: {asked_for}."
    if language:
        head = f"{head} Write every statement and topic in {language}; names stay as they are."
    return [{"role": "system", "content": prompt.text}, {"role": "user", "content": f"{head}\n{render(window)}"}]
