"""Requests to forget, and corrections of what was said just before. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from afterword.facts.assertions import Cue, SpeechAct
from afterword.facts.words import word_set

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
_LED = (
    r"^(?:(?:can|could|would|will) you (?:please )?|(?:I|we)(?:'d| would)? (?:like|want|need|asked?|told) you to )?"
    r"(?:please )?(?:just )?"
)
_OWN = r"(?P<said>(?:I|I'm|I've|we|we're|we've|my|our)\b.+)"
_FORGET = tuple(
    re.compile(_LED + pattern, re.IGNORECASE)
    for pattern in (
        rf"(?:forget|(?:don't|do not) remember)(?: about)? {_OWN}",
        r"(?:forget|erase|delete|remove|wipe|stop remembering|(?:don't|do not|never) (?:remember|store|save|keep|"
        r"note|record|memori[sz]e))(?: about)?(?: the (?:fact|bit|part))? that (?P<said>.+)",
    )
)
_LED_QUESTION = re.compile(
    r"^(?:(?:and|so|but|also|hi|hey|ok|oh)\b[, ]{1,2})?(?:can|could|would|will) you (?=(?:please )?(?:just )?"
    r"(?:forget|erase|delete|not remember|stop remembering|remove|wipe)\b)",
    re.IGNORECASE,
)
_UNTRUE = (
    r"(?:not (?:true|so|right|correct|the case)|untrue|false|wrong|incorrect|a lie|no longer (?:true|so|the case))"
)
_DENY = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"^(?:it|that)(?:'s| is| was) (?:just |simply |actually )?{_UNTRUE}(?: any ?more)?,? that (?P<said>.+)",
        r"^(?:it|that) (?:isn't|wasn't) (?:true|so|right|correct|the case)(?: any ?more)?,? that (?P<said>.+)",
        r"^(?:I|we)(?:'ve| have)? never (?:said|told you|claimed|mentioned|wrote)(?: that)? (?P<said>.+)",
        rf"^(?:I|we) (?:didn't|did not|haven't|have not) (?:say|said|tell you|told you|claim|claimed)(?: that)? {_OWN}",
        r"^(?:I|we) deny that (?P<said>.+)",
        rf"^(?:you're|you are) (?:wrong|mistaken) (?:that|to think(?: that)?) {_OWN}",
        rf"^that (?P<said>(?:I|I'm|we|my|our)\b.+?) (?:is|was) {_UNTRUE}(?: any ?more)?$",
    )
)
_ANY_MORE = r"any ?(?:more|longer)\b"
_ENDED = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"^(?P<head>[^,;:]{1,60}?)\s(?:no longer|no more) (?P<rest>.+)",
        rf"^(?P<head>[^,;:]{{1,60}}?(?: am| are| is|'m|'re|'s)) not (?P<rest>.+?),? {_ANY_MORE}",
        rf"^(?P<head>[^,;:]{{1,60}}? (?:are|is))n't (?P<rest>.+?),? {_ANY_MORE}",
        rf"^(?P<head>I|we) (?:don't|do not) (?P<rest>.+?),? {_ANY_MORE}",
        r"^(?P<head>I|we)(?:'ve| have)?(?: just)? (?:stopped|quit|gave up|given up) (?P<verb>[a-z]+)ing (?P<rest>.+)",
    )
)
_NO_WISH = re.compile(r"^no\b", re.IGNORECASE)
_LOSES_E = word_set(
    """liv us tak driv smok writ mak hav lov ador cod danc bak cycl rid serv receiv commut schedul releas hat
    hom leas advis manag organis organiz stor tast cultivat practis practic exercis shar"""
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


@dataclass(frozen=True, slots=True)
class TakeBack:
    """Something taken back: `said` is it as its speaker would say it, `is_denied` if it never was so."""

    act: SpeechAct
    said: str
    is_denied: bool = False

    @property
    def cue(self) -> Cue | None:
        """How it is marked against what was said before."""
        if self.act is SpeechAct.ERASE:
            return None
        return Cue.CORRECTION if self.is_denied else Cue.CHANGE


def taken_back(clause: str) -> TakeBack | None:
    """Return what a clause without lead and tail asks to forget, denies, or says is over; None where nothing."""
    for pattern in _FORGET:
        if found := pattern.match(clause):
            return TakeBack(SpeechAct.ERASE, found["said"])
    for pattern in _DENY:
        if found := pattern.match(clause):
            return TakeBack(SpeechAct.RETRACT, found["said"], is_denied=True)
    for pattern in _ENDED:
        if (found := pattern.match(clause)) and not _NO_WISH.match(clause):
            verb = _verb(found.groupdict().get("verb"))
            return TakeBack(SpeechAct.RETRACT, f"{found['head']} {verb}{found['rest']}")
    return None


def _verb(stem: str | None) -> str:
    """Return the verb whose form in -ing has this stem, with a space after it: "us" is `use `, "be" `am `."""
    if stem is None:
        return ""
    low = stem.lower()
    if low == "be":
        return "am "
    if low in _LOSES_E:
        return low + "e "
    is_doubled = len(low) > 3 and low[-1] == low[-2] and low[-1] not in "lsz"
    return (low[:-1] if is_doubled else low) + " "


def without_request(sentence: str) -> str:
    """Return a request to forget as a plain one: "Could you forget that ...?" is no question about a fact."""
    return _LED_QUESTION.sub("", sentence).rstrip("? ") if _LED_QUESTION.match(sentence) else sentence


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
