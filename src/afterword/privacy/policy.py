"""The privacy settings of a store, and the functions that apply them. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from afterword.facts.findings import FindingPolicy
from afterword.facts.transcripts import Transcript, Turn
from afterword.privacy.off_record import hide_off_record, hide_off_record_in_state, is_off_record
from afterword.privacy.record_requests import Markers, RecordChange
from afterword.privacy.redaction import ALL_KINDS, MASK, Masking, count_masks, is_only_masks

FACTS_PER_SESSION = 500
"""The most facts that are kept from one session. A day of conversation yields a few dozen; thousands are a mistake."""

SECRETS_MASKED = "secrets masked"
OFF_THE_RECORD = "off the record"
"""The keys under which `Transcript.skipped` counts masked secrets and hidden turns."""

_CLAUSE = r"(?:(?!\band\b)[^.,;!?])*"
# One clause that begins or ends with a secret says nothing but the secret: "My password is [redacted: password]."
_SAYS_A_SECRET = re.compile(rf"{_CLAUSE}{MASK.pattern}\W*|\W*{MASK.pattern}{_CLAUSE}\W*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Privacy:
    """The privacy settings of a store.

    `kinds` are the kinds of secret that are masked. `markers` are the phrases for off the record. At most
    `facts_per_session` statements are kept from one session. `findings` and `other_people` apply to scopes without a
    setting of their own: which agents' findings are kept, and whether agents are told what people other than the owner
    said.
    """

    kinds: frozenset[str] = ALL_KINDS
    markers: Markers = field(default_factory=Markers)
    facts_per_session: int = FACTS_PER_SESSION
    findings: FindingPolicy = field(default_factory=FindingPolicy)
    other_people: bool = False

    def mask_text(self, text: str) -> str:
        """Return a text without secrets."""
        return self.new_masking().mask_text(text)

    def new_masking(self) -> Masking:
        """Return a `Masking` for the texts of one conversation, in their order."""
        return Masking(self.kinds)

    def mask_value_and_others(self, attribute: str, value: str, *others: str) -> tuple[str, ...]:
        """Return the value and other fields of a statement without secrets.

        A secret that is recognised in one field is masked in all of them.
        """
        masking = Masking(self.kinds, thorough=True)
        masked = masking.mask_field(attribute, value)
        masked = masked if masked == value else masking.mask_text(masked)
        fields = (masked, *map(masking.mask_text, others))
        # A secret recognised in a later field may stand in an earlier one.
        return tuple(masking.mask_text(text) for text in fields) if masking.counts else fields

    def asks_off_record(self, text: str) -> bool:
        """Return whether a text asks not to be stored, as a turn that is off the record does."""
        return self.markers.requested_change(text) in (RecordChange.THIS, RecordChange.OFF)

    def objection(self, statement: str, value: str | None = None) -> str | None:
        """Return the reason why an entered statement must not be stored, or None if it may be stored.

        A statement is refused if it asks to be off the record, or if it says nothing but a secret.
        """
        if self.asks_off_record(statement):
            return "it asks to be off the record"
        masked = self.mask_text(statement)
        is_secret = _SAYS_A_SECRET.fullmatch(masked) or is_only_masks(self.mask_text(value or ""))
        return "it is a secret" if is_secret else None

    def mask_and_hide_turns(self, turns: Iterable[Turn]) -> tuple[Turn, ...]:
        """Return the turns without secrets and without what was said off the record."""
        masking = self.new_masking()
        masked = ((turn, masking.mask_next_turn(turn.text, turn.speaker)) for turn in turns)
        return hide_off_record(
            [turn if text == turn.text else replace(turn, text=text) for turn, text in masked], self.markers
        )

    def mask_state(self, state: Mapping[str, Any], humans: Collection[str] | None = None) -> dict[str, Any]:
        """Return a saved state that AutoGen can load, without secrets.

        If the names of `humans` are given, what they said off the record is removed too, with the answers to it.
        """
        masked = self.new_masking().mask_state(state)
        return masked if humans is None else hide_off_record_in_state(masked, self.markers, humans)


def with_privacy_counts(transcript: Transcript) -> Transcript:
    """Return the transcript with the numbers of its masked secrets and of its hidden turns in `skipped`."""
    counts = {
        SECRETS_MASKED: count_masks(turn.text for turn in transcript.turns),
        OFF_THE_RECORD: sum(map(is_off_record, transcript.turns)),
    }
    others = {reason: count for reason, count in transcript.skipped.items() if reason not in counts}
    return replace(transcript, skipped={**others, **{reason: count for reason, count in counts.items() if count}})
