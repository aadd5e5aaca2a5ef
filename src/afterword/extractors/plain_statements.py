"""Decide whether a person states something plainly: without a question, a denial, a condition or hearsay. Pure.

A fact that an agent stores during a conversation counts at once only if its quote is such a plain statement, because a
model may misread other sentences. Nothing is lost, because the whole session is read later.
"""

from __future__ import annotations

import re

from afterword.extractors.quote_search import find_quote
from afterword.extractors.quote_support import (
    has_doubt_or_condition,
    has_word_of_denial,
    speaks_of_speaker,
    tells_of_denial_or_dislike,
)
from afterword.extractors.said_words import plain_text, sentence_around
from afterword.facts.assertions import OWNER, Assertion, SpeechAct
from afterword.facts.removals import says_that_something_ends
from afterword.facts.transcripts import Turn
from afterword.facts.words import phrase_pattern

_UNREAL = phrase_pattern(
    r"suppose|supposing|assum\w+|imagin\w+|pretend\w*|let's say|let us say|for the sake of|as if|wish\w*",
    r"hope|hopes|hoping|dream\w*|novel|universe|should|used to|formerly|one day|some ?day|when (?:i|we)",
    r"false|untrue|a lie|wrong|sure|(?:i|we) (?:was|were|lived|worked|studied)(?! born)",
    r"den(?:y|ies|ied)|away from|who|whose|n'\w+ (?:plus|pas|jamais)",
    r"angenommen|stell dir vor|würde|wünschte|hoffe|eines tages|falsch|suponga\w*|imagin\w+|ojalá|supposons|j'espère",
    r"un jour|supponiamo|immagina\w*|spero|un giorno|sembra|espero|stel dat|hoop|ooit",
)
_REPORTED = phrase_pattern(
    r"sa(?:y|ys|id)|claim\w*|thinks?|thought|believ\w+|told|tells?|write|wrote|writes|repl(?:y|ies|ied)|translat\w+",
    r"correct this|hint|jok(?:e|es|ed|ing)|ad|sag\w*|schreib\w*|meint\w*|glaub\w*|di(?:ce|jo|go)|escrib\w*|cree\w*|dit",
    r"écri\w*|croi\w*|scriv\w*|crede|disse|escrev\w*|zeg\w*|schrijf\w*",
)
_PLAYED = phrase_pattern(
    r"play|act as|role-?play\w*|you are (?:an?|the|my)|you're (?:an?|the|my)|sei|spiel\w*|joue|interpreta"
)
_OF_OWN = re.compile(
    r"\W*(?:my|our) (?:son|daughter|wife|husband|partner|brother|sister|mother|father|mum|mom|dad|friend|boss|kid)\b"
    r"|\W*(?:my|our) (?:\w+ ){1,4}(?!(?:is|are|was|were)\b)\w{3,}s\b",
    re.IGNORECASE,
)
_SELF = re.compile(r"\b(?:i|i'm|i've|we|me|us)\b", re.IGNORECASE)


def rests_on_plain_statement(assertion: Assertion, turn: Turn) -> bool:
    """Return whether a sentence of the turn that the assertion quotes states it plainly."""
    if _PLAYED.search(plain_text(turn.text)):
        return False
    quotes = (find_quote(cited.quote, turn.text) for cited in assertion.evidence if cited.turn == turn.number)
    places = [(turn.text.index(quote), quote) for quote in quotes if quote]
    sentences = ["".join(sentence_around(turn.text, start, start + len(quote))) for start, quote in places]
    return any(_is_plain(plain_text(sentence), assertion) for sentence in sentences)


def _is_plain(sentence: str, assertion: Assertion) -> bool:
    if "?" in sentence or has_doubt_or_condition(sentence) or _UNREAL.search(sentence) or _REPORTED.search(sentence):
        return False
    if assertion.subject == OWNER and (not speaks_of_speaker(sentence) or _is_of_somebody_else(sentence)):
        return False
    ends = has_word_of_denial(sentence) or says_that_something_ends(sentence)
    return ends == (assertion.act is not SpeechAct.STATE) or tells_of_denial_or_dislike(assertion.statement)


def _is_of_somebody_else(sentence: str) -> bool:
    """Return whether a sentence is about somebody or something of the speaker, not the speaker: "my boss lives"."""
    return bool(_OF_OWN.match(sentence)) and not _SELF.search(sentence)
