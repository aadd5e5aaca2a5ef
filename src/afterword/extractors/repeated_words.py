"""Recognising a person's words that only repeat what an agent or a memory block has said about the person. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from afterword.facts.assertions import Evidence
from afterword.facts.transcripts import Role, Turn
from afterword.facts.words import folded

_TURNS_BEFORE = 40
_FEWEST_WORDS = 3
_OF_BLOCK = re.compile(
    r"\bthe user(?:['’]s [\w ]{1,30}?)? (?:is|are|was|has|had|have|lives?|likes?|loves?|prefers?|works?|wants?|needs?|"
    r"never|always|does|do|can|will|takes?|uses?|owns?|plans?)\b"
)
_SPEAKER = re.compile(
    r"\b(?:i|me|my|mine|we|our|us|ich|mir|mich|mein\w*|wir|uns\w*|j|je|moi|mon|ma|mes|nous|notre|nos|yo|mi|mis|nosotros|nuestr\w*|"
    r"io|mio|mia|miei|noi|nostr\w*|eu|meu|minha|nós|noss\w*|ik|mij|mijn|wij|ons|onze)\b"
)
_ASSISTANT = re.compile(
    r"\b(?:you|your|yours|du|dir|dich|dein\w*|ihnen|ihr\w*|tu|tes|vous|votre|vos|tú|usted|sus|lei|tuo|tua|suo|sua|"
    r"você|teu|tua|seu|jij|jouw|uw)\b"
)


def repeated_words(evidence: Iterable[Evidence], turns: Mapping[int, Turn]) -> str | None:
    """Return a quote of a person that only repeats what an agent or a memory has said, None if there is none."""
    quotes = ((cited.quote, turns[cited.turn or 0]) for cited in evidence)
    return next((quote for quote, turn in quotes if turn.role is Role.HUMAN and _is_repeated(quote, turn, turns)), None)


def _is_repeated(quote: str, turn: Turn, turns: Mapping[int, Turn]) -> bool:
    """Return whether a person's words about "the user", or about "you", are no statement of the person's own.

    Words that speak of the owner as "the user" are those of a memory. Words with "you" and without "I" are an agent's
    if one of its turns just before says the same.
    """
    words = folded(quote)
    if _OF_BLOCK.search(words):
        return True
    if len(words.split()) < _FEWEST_WORDS or _SPEAKER.search(words) or not _ASSISTANT.search(words):
        return False
    before = (turns.get(number) for number in range(turn.number - 1, turn.number - _TURNS_BEFORE, -1))
    others = (other for other in before if other is not None and other.role in (Role.AGENT, Role.MEMORY))
    return any(words.strip(".!? ") in folded(other.text) for other in others)
