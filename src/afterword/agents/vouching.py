"""Checking that a person's message supports what an agent asks to remember or withdraw. Pure.

A web page may have told the agent what to ask for. So a quote alone is not enough (a page could ask for any statement
with the quote "Hello"): the sentences that contain the quote must say what is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from afterword.extractors.grounding import find_quote
from afterword.facts.fact import Fact
from afterword.facts.words import plain_words, terms

# What a sentence about a person may add to the person's own words.
_FRAME = frozenset(terms("user owner person preference prefers says said asks asked told wants"))
_BREAK = re.compile(r"[.!?…。！？]+(?=\s|$)|[。！？]|[\r\n;]+")
_ASKED_TO_KEEP = re.compile(
    r"\b(?:(?:please|(?:can|could|will|would) you)[\s,]+)*"
    r"(?:remember|note|(?:keep|bear) in mind|make a note|do(?:n['’]t| not) forget|memori[sz]e|save)\b",
    re.IGNORECASE,
)
_NEGATION = re.compile(
    r"n['’]t\b|\b(?:no|not|never|none|nobody|nothing|neither|nor|without|cannot|dont|doesnt|cant|wont|hates?|hated|"
    r"dislikes?|disliked|avoids?|avoided|refuses?|stop(?:s|ped)?|quits?|except|unlike|instead of|rather than|"
    r"nicht|kein\w*|nie|ohne|pas|jamais|sans|nunca|jamás|sin|non|mai|senza|não|nem)\b",
    re.IGNORECASE,
)
_TAKING_BACK = re.compile(
    r"\b(?:forget|remove|delete|withdraw|drop|discard|wrong|incorrect|mistaken?|untrue|outdated|changed?|moved|switched|"
    r"used to|no longer|any ?more|instead|former|vergiss|falsch|oublie[rz]?|faux|olvida|ya no)\b",
    re.IGNORECASE,
)
_NEGATING_TERMS = frozenset(
    terms("hate hates dislike dislikes avoid avoids refuse refuses stop stops quit quits without never")
)


def statement_refusal(statement: str, quote: str, message: str | None, *, names: Iterable[str] = ()) -> str | None:
    """Return why a person's message does not support a statement, None if it does.

    The quote must occur in the message. The sentences that contain it must hold every word of the statement (stems;
    stop words and `names` aside), must not be a question, and must be negated exactly if the statement is.
    """
    said, reason = _quoted_sentences(quote, message)
    if reason:
        return reason
    bare, asked = _ASKED_TO_KEEP.subn(" ", said)
    if not asked and "?" in said:
        return "the person asked that, and did not state it"
    missing = _words_not_said(statement, said, names)
    if missing:
        return f"the person did not say: {', '.join(missing)}"
    if bool(_NEGATION.search(bare)) != bool(_NEGATION.search(statement)):
        return "the person said the opposite, or it cannot be told"
    return None


def withdrawal_refusal(fact: Fact, quote: str, message: str | None) -> str | None:
    """Return why a person's message does not support withdrawing a fact, None if it does.

    The quote must occur in the message. The sentences that contain it must withdraw something and name the fact: every
    word of its value, or half of the words of its statement.
    """
    said, reason = _quoted_sentences(quote, message)
    if reason:
        return reason
    if not _TAKING_BACK.search(said) and not _NEGATION.search(said):
        return "the person took nothing back"
    spoken = set(terms(said))
    value = set(terms(fact.value)) - _FRAME
    words = set(terms(f"{fact.statement} {fact.attribute}")) - _FRAME
    if (value and value <= spoken) or (words and 2 * len(words & spoken) >= len(words)):
        return None
    return "the person did not speak of it"


def _quoted_sentences(quote: str, message: str | None) -> tuple[str, str | None]:
    """Return the sentences of the message that contain the quote, else the reason why there are none."""
    if message is None:
        return "", "no message of a person was seen"
    words = find_quote(quote, message)
    if words is None:
        return "", "the quote does not stand in the person's last message"
    start = message.index(words)
    return _sentences(message, start, start + len(words)), None


def _sentences(text: str, start: int, end: int) -> str:
    breaks = [match.end() for match in _BREAK.finditer(text)]
    first = max((place for place in breaks if place <= start), default=0)
    last = min((place for place in breaks if place >= end), default=len(text))
    return text[first:last].strip()


def _words_not_said(statement: str, said: str, names: Iterable[str]) -> list[str]:
    """Return the words of the statement that were not said, as they stand in it."""
    # A stop word of one may be the stem of the other: "I own", "the user owns".
    spoken = {*terms(said), *plain_words(said.casefold())}
    allowed = {*spoken, *terms(" ".join(names)), *_FRAME, *_NEGATING_TERMS}
    return [word for word in dict.fromkeys(plain_words(statement)) if not set(terms(word)) <= allowed]
