"""What a store never keeps: secrets, and what was said off the record. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from afterword.facts.transcripts import Transcript, Turn
from afterword.privacy.off_record import Markers, hidden_turns, off_record, off_record_state
from afterword.privacy.redaction import ALL, Masking, masks

SECRETS_MASKED = "secrets masked"
OFF_THE_RECORD = "off the record"
"""Under which reasons a transcript counts them among what was skipped."""


@dataclass(frozen=True, slots=True)
class Privacy:
    """Which kinds of secret are masked (`redaction.ALL` or some of them), and what takes turns off the record."""

    kinds: frozenset[str] = ALL
    markers: Markers = field(default_factory=Markers)

    def text(self, text: str) -> str:
        """Return a text without secrets."""
        return self.masking().text(text)

    def masking(self) -> Masking:
        """Return what masks the texts of one conversation, one after the other."""
        return Masking(self.kinds)

    def fields(self, attribute: str, value: str, *others: str) -> tuple[str, ...]:
        """Return the value of an attribute and other fields of one statement: what is a secret in one is one in all."""
        masking = Masking(self.kinds, thorough=True)
        value = masking.named(attribute, value)
        first = tuple(masking.text(text) for text in (value, *others))
        # What was learned last may stand in the first of them.
        return tuple(masking.text(text) for text in first) if masking.counts else first

    def turns(self, turns: Iterable[Turn]) -> tuple[Turn, ...]:
        """Return the turns without secrets and without what was said off the record."""
        masking = self.masking()
        shown = ((turn, masking.text(turn.text)) for turn in turns)
        return off_record(
            [turn if text == turn.text else replace(turn, text=text) for turn, text in shown], self.markers
        )

    def state(self, state: Mapping[str, Any], humans: Collection[str] | None = None) -> dict[str, Any]:
        """Return a saved state that AutoGen can load, without secrets.

        With the names of `humans` also without what they said off the record, and the answers to it.
        """
        shown = dict(state) if humans is None else off_record_state(state, self.markers, humans)
        return self.masking().state(shown)


def counted(transcript: Transcript) -> Transcript:
    """Return the transcript with the number of its masked secrets and of its turns off the record in `skipped`."""
    counts = {
        SECRETS_MASKED: masks(turn.text for turn in transcript.turns),
        OFF_THE_RECORD: hidden_turns(transcript.turns),
    }
    others = {reason: count for reason, count in transcript.skipped.items() if reason not in counts}
    found = {reason: count for reason, count in counts.items() if count}
    return replace(transcript, skipped={**others, **found})
