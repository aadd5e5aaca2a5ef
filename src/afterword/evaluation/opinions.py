"""What a model thinks of current facts that match no gold fact: junk, or something that the gold left out?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from afterword.evaluation.measure import unmatched_facts
from afterword.evaluation.scenarios import Scenario, Story
from afterword.extractors.errors import ExtractionError
from afterword.extractors.extractor import Usage
from afterword.extractors.model.opinion import NOTES_A_CALL, ModelOpinion, Note, Opinion
from afterword.facts.fact import Fact
from afterword.privacy.policy import Privacy


@dataclass(frozen=True, slots=True)
class Opinions:
    """A model's opinions on the facts of one system: by scenario, each statement with what was thought of it.

    `asked` counts the facts, those whose question failed too; `failures` holds (scenario, reason).
    """

    version: str
    asked: int
    given: Mapping[str, Sequence[tuple[str, Opinion]]]
    failures: Sequence[tuple[str, str]] = ()
    usage: Usage = field(default_factory=Usage)

    @property
    def every(self) -> list[Opinion]:
        """All opinions that were given."""
        return [opinion for pairs in self.given.values() for _, opinion in pairs]


async def ask_opinions(
    asked: ModelOpinion, scenarios: Sequence[Scenario], facts: Mapping[str, Sequence[Fact]]
) -> Opinions:
    """Ask for an opinion on every current fact that matches no gold fact; the model sees no gold."""
    given: dict[str, list[tuple[str, Opinion]]] = {}
    failures: list[tuple[str, str]] = []
    usage, count = Usage(), 0
    for scenario in scenarios:
        notes = [_note(fact, scenario.story()) for fact in unmatched_facts(scenario, facts[scenario.id])]
        count += len(notes)
        for start in range(0, len(notes), NOTES_A_CALL):
            part = notes[start : start + NOTES_A_CALL]
            try:
                found, cost = await asked.of(part)
            except ExtractionError as error:
                failures.append((scenario.id, f"{type(error).__name__}: {error}"))
                continue
            usage += cost
            said = ((note.statement, one) for note, one in zip(part, found, strict=True))
            given.setdefault(scenario.id, []).extend(said)
    return Opinions(asked.version, count, given, failures, usage)


def _note(fact: Fact, story: Story) -> Note:
    """Return the fact with the whole messages that its quotes come from: a quote alone may hide a joke. Secrets in them
    are masked, as in whatever else a model is sent."""
    masking = Privacy().new_masking()
    passages: dict[tuple[str, str, str], None] = {}
    for item in fact.evidence:
        quoted = (f"{fact.said_at:%Y-%m-%d}", item.speaker or "", item.quote)
        for passage in _passages(story, item.session_id, item.quote) or [quoted]:
            day, speaker, words = passage
            passages[day, speaker, masking.mask_text(words)] = None
    return Note(fact.statement, tuple(passages))


def _passages(story: Story, session_id: str | None, quote: str) -> list[tuple[str, str, str]]:
    wanted = " ".join(quote.split())
    return [
        (f"{session.started_at:%Y-%m-%d}", message.source, message.content)
        for session in story.sessions
        for message in session.messages
        if session.session_id == session_id and message.role in ("user", "assistant")
        if wanted in " ".join(message.content.split())
    ]
