"""Requests to forget, and corrections of what was said just before. Pure."""

from __future__ import annotations

import re

from afterword.store.assertions import Cue

_TOPIC = r"(?P<topic>[^,.;:!?]{2,80}?)"
_TOPIC_END = (
    r"(?=$|[,.;:!?]|\s(?:that )?I (?:told|said|mentioned|shared)\b|\s(?:I should|was|is|were|are|had|has)\b|"
    r"\splease\b|\sagain\b)"
)
_TOLD = (
    r"(?:told|said|mentioned|wrote|shared)(?: to)?(?: you)?(?: (?:in|on|last|earlier|before|yesterday) "
    r"?(?:the |my )?\w*)?"
)
_ERASE = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:forget|delete|erase|wipe|remove)\b (?:everything |all |anything )?(?:what|that|which)? ?I(?:'ve| "
        rf"have)? (?:just )?{_TOLD} about {_TOPIC}{_TOPIC_END}",
        rf"\b(?:forget|delete|erase|wipe) (?:about )?(?:that|the|this|my|our|all the) {_TOPIC} (?:thing|story|"
        rf"stuff|business|part|bit|topic)\b",
        rf"\b(?:forget|delete|erase|wipe) (?:about )?(?:that|the|this|my|our|all the) {_TOPIC}\s(?:that )?I "
        rf"(?:told|mentioned|shared|gave)\b",
    )
)
_TOLD_ABOUT = re.compile(rf"\bwhat I(?:'ve| have)? {_TOLD} about {_TOPIC}{_TOPIC_END}", re.IGNORECASE)
_DELETE = re.compile(
    r"\b(?:please )?(?:delete|erase|forget|wipe out|remove|wipe) (?:that|it|this|all of (?:that|it))\b", re.IGNORECASE
)
_NO_TOPIC = re.compile(
    r"^(?:it|that|this|everywhere|now|completely|altogether|again|idea|question|all|one|file|line|row|branch|"
    r"draft|event|message|mail|email|rest|last)\b",
    re.IGNORECASE,
)

_CORRECTION = re.compile(
    r"\b(?:actually|I meant|I misremembered|I mistyped|typed it|(?:wrote|said|typed) (?:rubbish|nonsense|that "
    r"wrong|it wrong)|my mistake|typo|"
    r"correction|got (?:that|it) wrong|mixed (?:that|them|it|things) up|one zero too|I was wrong|is right, |scratch)\b"
    r"|\b(?:sorry|wait|no)\b[,. ]+(?:not|it's|I meant|no)\b|\bno,? (?:it's |that's )?\d|\bnot \w+,? (?:sorry|but)\b",
    re.IGNORECASE,
)
_CHANGE = re.compile(
    r"\b(?:from now on|(?<!years )now|no longer|any ?more|switched|changed|instead(?: of)?|as of|take (?:it|that|"
    r"this) back|take back|change of plan|"
    r"from next|new|stop(?:ped)?|moved|since (?:last|this|\w+day)|starting)\b",
    re.IGNORECASE,
)
_NOT_NUMBER = re.compile(r"\bnot (?:the )?(\d[\d.,]*)\s?(k\b)?", re.IGNORECASE)


def erased_topic(sentence: str, turn: str) -> str | None:
    """Return what a sentence asks to be forgotten, or None; "delete that" takes its topic from the same turn."""
    plain = sentence.replace("’", "'")
    for pattern in _ERASE:
        found = pattern.search(plain)
        if found and not _NO_TOPIC.match(found.group("topic")):
            return found.group("topic").strip()
    if _DELETE.search(plain):
        told = _TOLD_ABOUT.search(turn.replace("’", "'")[:4_000])
        return told.group("topic").strip() if told else None
    return None


def is_correction(text: str) -> bool:
    """Return whether a sentence puts right what its speaker said before."""
    return bool(_CORRECTION.search(text.replace("’", "'")))


def cue(text: str, *, is_correcting: bool) -> Cue | None:
    """Return how a sentence is marked against what was said before."""
    if is_correcting or is_correction(text):
        return Cue.CORRECTION
    return Cue.CHANGE if _CHANGE.search(text) else None


def denied_numbers(sentence: str) -> set[str]:
    """Return the numbers that a sentence says are wrong ("3.2k, not 32k"), thousands written out."""
    found = set()
    for digits, thousand in _NOT_NUMBER.findall(sentence):
        plain = digits.strip(".,")
        found.add(number(plain + (thousand or "")))
    return found


def number(text: str) -> str:
    """Return a number in one spelling: "32k", "32,000" and "32 000" are 32000."""
    plain = re.sub(r"(?<=\d)[ , ](?=\d{3}\b)", "", text.lower())
    if plain.endswith("k"):
        try:
            return f"{float(plain[:-1].replace(',', '.')) * 1000:.0f}"
        except ValueError:
            return plain
    return plain


def numbers(text: str) -> set[str]:
    """Return the numbers in a text, each in one spelling."""
    return {number(found) for found in re.findall(r"\d+(?:[ ,.]\d{3})*(?:[.,]\d+)?k?\b", text.lower())}
