"""From utterances to the numbered turns of a transcript."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from afterword.extractors.readers.memory_marks import Piece, is_system_memory, pieces
from afterword.extractors.readers.people import People
from afterword.extractors.readers.utterances import Notes, Reading, Utterance
from afterword.facts.transcripts import Role, TimeBasis, Transcript, Turn
from afterword.privacy.off_record import hide_off_record
from afterword.privacy.policy import Privacy, with_privacy_counts
from afterword.privacy.redaction import Masking

LONGEST_CONTEXT = 4_000
"""Characters of a turn that is context only; a person's and an agent's words are never cut."""

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_NEVER_CUT = frozenset({Role.HUMAN, Role.AGENT})
_PARTED = frozenset({Role.HUMAN, Role.AGENT, Role.SYSTEM})


def transcript_of(reading: Reading, notes: Notes, people: People, privacy: Privacy) -> Transcript:
    """Return the transcript of a reading: roles decided, injected memory parted, secrets masked, long context cut."""
    turns: list[Turn] = []
    masking = privacy.new_masking()
    cast = {name: _Speaker.of(name, reading, notes, people) for name in {said.source for said in reading.utterances}}
    for utterance in reading.utterances:
        name, role, _ = cast[utterance.source]
        message_id = _storable(utterance.message_id, notes) if utterance.message_id else None
        for part_role, text in _parts(utterance, utterance.role or role, notes, masking):
            turns.append(Turn(len(turns) + 1, name, part_role, text, utterance.said_at, message_id))
    humans = tuple(dict.fromkeys(turn.speaker for turn in turns if turn.role is Role.HUMAN))
    if not humans and any(turn.role is Role.AGENT for turn in turns):
        notes.skip("no human recognised")
    basis = TimeBasis.TURNS if any(turn.said_at for turn in turns) else None
    assumed = {speaker.name for speaker in cast.values() if speaker.is_assumed}
    assumed -= {speaker.name for speaker in cast.values() if not speaker.is_assumed}
    guessed = tuple(name for name in humans if name in assumed)
    shown = hide_off_record(turns, privacy.markers)
    return with_privacy_counts(Transcript(shown, reading.layout, humans, dict(notes.skipped), basis, guessed))


class _Speaker(NamedTuple):
    """A speaker's name as it is stored, whether it is a person or an agent, and whether that is only assumed."""

    name: str
    role: Role
    is_assumed: bool

    @classmethod
    def of(cls, source: str, reading: Reading, notes: Notes, people: People) -> _Speaker:
        """Tell a person from an agent: what the caller says, then what the state shows, then the name."""
        is_known = people.is_given(source) or (people.has(source) and source not in reading.agents)
        is_assumed = not is_known and source in reading.outsiders
        return cls(_storable(source, notes), Role.HUMAN if is_known or is_assumed else Role.AGENT, is_assumed)


def _parts(said: Utterance, role: Role, notes: Notes, masking: Masking) -> Iterable[tuple[Role, str]]:
    text = _storable(said.text, notes)
    if not text.strip():
        if role in _NEVER_CUT:
            notes.skip("empty message")
        return ()
    if role is Role.SYSTEM and is_system_memory(text, notes.injected):
        return [(Role.MEMORY, _cut(masking.mask_text(text)))]
    if role not in _PARTED:
        return [(role, _cut(masking.mask_text(text)))]
    return [_part(piece, role, masking) for piece in pieces(text, notes.injected)]


def _part(piece: Piece, role: Role, masking: Masking) -> tuple[Role, str]:
    # Masked before it is cut: half a secret is not recognised.
    text = masking.mask_text(piece.text)
    if piece.is_memory:
        return Role.MEMORY, _cut(text)
    return role, text if role in _NEVER_CUT else _cut(text)


def _storable(text: str, notes: Notes) -> str:
    """Replace what a database or UTF-8 cannot hold: NUL and lone surrogates."""
    if text.isascii() and "\x00" not in text:
        return text
    stored, count = _UNSTORABLE.subn("\ufffd", text)
    if count:
        notes.skip("replaced characters", count)
    return stored


def _cut(text: str) -> str:
    left_out = len(text) - LONGEST_CONTEXT
    return text if left_out <= 0 else f"{text[:LONGEST_CONTEXT]}… [{left_out} characters left out]"
