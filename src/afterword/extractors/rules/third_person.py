"""Rewrite a first-person sentence in the third person. Pure."""

from __future__ import annotations

import re
from functools import lru_cache

from afterword.facts.words import word_set

_PAST = word_set(
    """was were had did went took got bought made said told saw came found gave left kept drove ran began chose met
    paid sold thought knew wrote spoke ate lost won built sent spent taught understood held heard felt became
    brought put set quit let hit cut could would should can must will may might shall cannot never always
    usually also only just still now already mostly normally generally really actually often sometimes rarely
    typically"""
)
_LOOK_PAST = frozenset({"need", "feed", "bring", "sing", "ring", "speed", "breed", "exceed", "proceed", "embed"})
_NO_VERB = word_set(
    """to for and or in on at of as with not from about because so that this a an the all both too if when who but
    than is are am"""
)
_ADVERBS = (
    r"(?:(?:always|never|usually|also|only|just|still|now|already|mostly|normally|generally|really|actually|often|"
    r"sometimes|rarely|typically|much|strongly|simply|mainly|currently|absolutely|personally|definitely|finally|"
    r"no longer|[a-z]{3,12}ly)\s){0,3}"
)
_FIXED = (
    (r"I(?:'m| am)\b", "{I} is"),
    (r"I was\b", "{I} was"),
    (r"I(?:'ve| have)\b", "{I} has"),
    (r"I(?:'ll| will)\b", "{I} will"),
    (r"I'd\b", "{I} would"),
    (r"I (?:do not|don'?t)\b", "{I} does not"),
    (r"I (?:can't|cannot|can not)\b", "{I} cannot"),
    (r"I won't\b", "{I} will not"),
    (r"we(?:'re| are)\b", "{we} is"),
    (r"we were\b", "{we} was"),
    (r"we(?:'ve| have)\b", "{we} has"),
    (r"we(?:'ll| will)\b", "{we} will"),
    (r"we'd\b", "{we} would"),
    (r"we (?:do not|don'?t)\b", "{we} does not"),
    (r"we (?:can't|cannot|can not)\b", "{we} cannot"),
    (r"we won't\b", "{we} will not"),
    (r"let's\b", "{we} will"),
    (r"you(?:'re| are)\b", "{you} is"),
    (r"you(?:'ve| have)\b", "{you} has"),
    (r"you(?:'ll| will)\b", "{you} will"),
)
_RULES = tuple((re.compile(rf"\b{pattern}", re.IGNORECASE), replacement) for pattern, replacement in _FIXED)
_PRESENT = re.compile(rf"\b(?P<who>I|we|you)\s(?P<adverbs>{_ADVERBS})(?P<verb>[a-z]+)\b", re.IGNORECASE)
_POSSESSIVE = (
    (re.compile(r"\b(?:my|mine)\b", re.IGNORECASE), "{I}'s"),
    (re.compile(r"\b(?:our|ours)\b", re.IGNORECASE), "{we}'s"),
    (re.compile(r"\bme\b", re.IGNORECASE), "{I}"),
    (re.compile(r"\bus\b"), "{we}"),
    (re.compile(r"\bmyself\b|\bourselves\b", re.IGNORECASE), "themselves"),
    (re.compile(r"\byour\b", re.IGNORECASE), "the assistant's"),
    (re.compile(r"\byou\b", re.IGNORECASE), "the assistant"),
    (re.compile(r"\bI\b"), "{I}"),
    (re.compile(r"\bwe\b", re.IGNORECASE), "{we}"),
)
_LEAD = re.compile(
    r"^(?:(?:so|and|or|but|ok|okay|oh|ah|anyway|also|yes|yep|yeah|hi|hey|hello|hmm|btw|by the way|please|plus|"
    r"besides|fyi|yes please|"
    r"as i said|of course)\b[\s,:!.]{0,3}"
    r"|(?:well|right|no|nope|now|actually|listen|look|then|wait|sorry|note|one thing|first|second|third|good "
    r"morning|morning|evening|"
    r"correction|honestly|basically|exactly|again|good|great|fine|thanks|thank you|just|agreed|one more thing)[,:!.]\s?"
    r"|\d{1,2}[.)]\s|[-*•]\s|[,:!.–—-]\s?)",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"[\s,]\b(?:please|pls|then|btw|by the way|though|sorry|thanks|thank you|thx|ok|okay|right|too|of course)$",
    re.IGNORECASE,
)
_MARKS = " ,.:;!–—-\n\t"


@lru_cache(maxsize=256)  # every rule asks for the same clause
def trimmed(text: str) -> str:
    """Return the text without filler words at its start ("so, well, ...") and end ("... please, thanks")."""
    for _ in range(5):
        shorter = _LEAD.sub("", text, count=1)
        if shorter == text:
            break
        text = shorter
    text = text.rstrip(_MARKS)
    for _ in range(3):
        text = _TAIL.sub("", text).rstrip(_MARKS)
    return text


def third_person(text: str, singular: str, plural: str) -> str:
    """Return the text with `singular` for "I" and `plural` for "we". Verbs in the present tense agree."""
    names = {"I": singular, "we": plural, "you": "the assistant"}
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement.format(**names), text)
    text = _PRESENT.sub(lambda phrase: _agreeing(phrase, names), text)
    for pattern, replacement in _POSSESSIVE:
        text = pattern.sub(replacement.format(**names), text)
    return text


def sentence(text: str) -> str:
    """Return the text with a capital letter at its start and a full stop at its end."""
    text = " ".join(text.split()).rstrip(" ,;:-–—")
    if not text:
        return ""
    return text[0].upper() + text[1:] + ("" if text.endswith((".", "!")) else ".")


def is_past(verb: str) -> bool:
    """Return whether a verb takes no ending in the third person: a past form, a modal, an adverb."""
    return verb in _PAST or (verb.endswith(("ed", "ing")) and verb not in _LOOK_PAST)


def _agreeing(phrase: re.Match[str], names: dict[str, str]) -> str:
    who = names[phrase["who"] if phrase["who"] in ("I", "you") else "we"]
    return f"{who} {phrase['adverbs']}{_with_s(phrase['verb'])}"


def _with_s(verb: str) -> str:
    low = verb.lower()
    if is_past(low) or low in _NO_VERB:
        return verb
    if low == "do" or low.endswith(("s", "x", "ch", "sh", "z", "go")):
        return verb + "es"
    if low.endswith("y") and low[-2:-1] not in "aeiou":
        return verb[:-1] + "ies"
    return verb + "s"
