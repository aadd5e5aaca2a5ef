"""Turn a conversation's utterances into the numbered turns of a transcript."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from afterword.extractors.readers.memory_marks import MessagePiece, is_system_memory, split_injected_memory
from afterword.extractors.readers.utterances import People, ReadingLog, SavedConversation, Utterance
from afterword.facts.transcripts import Role, TimeBasis, Transcript, Turn
from afterword.privacy.off_record import hide_off_record
from afterword.privacy.policy import Privacy, with_privacy_counts
from afterword.privacy.redaction import Masking

LONGEST_CONTEXT = 4_000
"""The most characters of a turn that is only context. Words of people and agents are never cut."""

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_NEVER_CUT = frozenset({Role.HUMAN, Role.AGENT})
_MAY_HOLD_MEMORY = frozenset({Role.HUMAN, Role.AGENT, Role.SYSTEM})


def build_transcript(conversation: SavedConversation, log: ReadingLog, people: People, privacy: Privacy) -> Transcript:
    """Return the transcript of a conversation.

    Here the roles are decided, injected memory is split off, secrets are masked, and long context is cut.
    """
    turns: list[Turn] = []
    masking = privacy.new_masking()
    sources = {utterance.source for utterance in conversation.utterances}
    speakers = {source: _speaker(source, conversation, log, people) for source in sources}
    for utterance in conversation.utterances:
        speaker = speakers[utterance.source]
        message_id = _storable(utterance.message_id, log) if utterance.message_id else None
        for role, text in _turn_texts(utterance, utterance.role or speaker.role, log, masking):
            turns.append(Turn(len(turns) + 1, speaker.name, role, text, utterance.said_at, message_id))
    humans = tuple(dict.fromkeys(turn.speaker for turn in turns if turn.role is Role.HUMAN))
    _log_doubts([turn.speaker for turn in turns if turn.role is Role.AGENT], humans, conversation, log)
    basis = TimeBasis.TURNS if any(turn.said_at for turn in turns) else None
    assumed = _assumed_names(humans, speakers.values())
    shown = hide_off_record(turns, privacy.markers)
    return with_privacy_counts(Transcript(shown, conversation.layout, humans, dict(log.skipped), basis, assumed))


class _Speaker(NamedTuple):
    """A speaker's name as it is stored, the role of a person or an agent, and whether a person is only assumed."""

    name: str
    role: Role
    is_assumed: bool


def _assumed_names(humans: Sequence[str], speakers: Collection[_Speaker]) -> tuple[str, ...]:
    """Return the names of people that only assumed people have."""
    assumed = {speaker.name for speaker in speakers if speaker.is_assumed}
    only_assumed = assumed - {speaker.name for speaker in speakers if not speaker.is_assumed}
    return tuple(name for name in humans if name in only_assumed)


def _log_doubts(
    agent_speakers: Sequence[str], humans: Sequence[str], conversation: SavedConversation, log: ReadingLog
) -> None:
    """Log if nobody was taken for a person, and how many turns of agents may be a person's."""
    if agent_speakers and not humans:
        log.skip("no human recognised")
    if unclear := sum(speaker in conversation.unclear_speakers for speaker in agent_speakers):
        log.skip("may be a person's", unclear)


def _speaker(source: str, conversation: SavedConversation, log: ReadingLog, people: People) -> _Speaker:
    """Return who speaks under the name `source`. The caller's list decides first, then the state, then the name."""
    is_known = people.is_listed_by_caller(source) or (people.is_known(source) and source not in conversation.agents)
    is_unclear = source in conversation.unclear_speakers
    may_be_person = source in conversation.outsiders or (is_unclear and people.is_user(source))
    is_assumed = not is_known and may_be_person
    return _Speaker(_storable(source, log), Role.HUMAN if is_known or is_assumed else Role.AGENT, is_assumed)


def _turn_texts(utterance: Utterance, role: Role, log: ReadingLog, masking: Masking) -> Iterable[tuple[Role, str]]:
    text = _storable(utterance.text, log)
    if not text.strip():
        if role in _NEVER_CUT:
            log.skip("empty message")
        return ()
    if role is Role.SYSTEM and is_system_memory(text, log.injected):
        return [(Role.MEMORY, _cut_context(masking.mask_text(text)))]
    if role not in _MAY_HOLD_MEMORY:
        return [(role, _cut_context(masking.mask_text(text)))]
    pieces = split_injected_memory(text, log.injected)
    return [_masked_piece(piece, role, utterance.source, masking) for piece in pieces]


def _masked_piece(piece: MessagePiece, role: Role, speaker: str, masking: Masking) -> tuple[Role, str]:
    # Mask before cutting, because half a secret is not recognised.
    if piece.is_memory:
        return Role.MEMORY, _cut_context(masking.mask_text(piece.text))
    text = masking.mask_next_turn(piece.text, speaker)
    return role, text if role in _NEVER_CUT else _cut_context(text)


def _storable(text: str, log: ReadingLog) -> str:
    """Replace what a database or UTF-8 cannot hold: NUL and lone surrogates."""
    if text.isascii() and "\x00" not in text:
        return text
    stored, count = _UNSTORABLE.subn("\ufffd", text)
    if count:
        log.skip("replaced characters", count)
    return stored


def _cut_context(text: str) -> str:
    left_out = len(text) - LONGEST_CONTEXT
    return text if left_out <= 0 else f"{text[:LONGEST_CONTEXT]}… [{left_out} characters left out]"
