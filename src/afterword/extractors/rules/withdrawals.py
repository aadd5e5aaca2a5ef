"""Find withdrawals: requests to forget, denials, things that ended, and corrections. Pure."""

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
_REQUEST_LEAD = (
    r"^(?:(?:can|could|would|will) you (?:please )?|(?:I|we)(?:'d| would)? (?:like|want|need|asked?|told) you to )?"
    r"(?:please )?(?:just )?"
)
_OWN_CLAIM = r"(?P<claim>(?:I|I'm|I've|we|we're|we've|my|our)\b.+)"
_FORGET = tuple(
    re.compile(_REQUEST_LEAD + pattern, re.IGNORECASE)
    for pattern in (
        rf"(?:forget|(?:don't|do not) remember)(?: about)? {_OWN_CLAIM}",
        r"(?:forget|erase|delete|remove|wipe|stop remembering|(?:don't|do not|never) (?:remember|store|save|keep|"
        r"note|record|memori[sz]e))(?: about)?(?: the (?:fact|bit|part))? that (?P<claim>.+)",
    )
)
_REQUEST_AS_QUESTION = re.compile(
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
        rf"^(?:it|that)(?:'s| is| was) (?:just |simply |actually )?{_UNTRUE}(?: any ?more)?,? that (?P<claim>.+)",
        r"^(?:it|that) (?:isn't|wasn't) (?:true|so|right|correct|the case)(?: any ?more)?,? that (?P<claim>.+)",
        r"^(?:I|we)(?:'ve| have)? never (?:said|told you|claimed|mentioned|wrote)(?: that)? (?P<claim>.+)",
        rf"^(?:I|we) (?:didn't|did not|haven't|have not) (?:say|said|tell you|told you|claim|claimed)"
        rf"(?: that)? {_OWN_CLAIM}",
        r"^(?:I|we) deny that (?P<claim>.+)",
        rf"^(?:you're|you are) (?:wrong|mistaken) (?:that|to think(?: that)?) {_OWN_CLAIM}",
        rf"^that (?P<claim>(?:I|I'm|we|my|our)\b.+?) (?:is|was) {_UNTRUE}(?: any ?more)?$",
    )
)
_ANY_MORE = r"any ?(?:more|longer)\b"
_ENDED = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"^(?P<head>[^,;:]{1,60}?)\s(?:no longer|no more) (?P<predicate>.+)",
        rf"^(?P<head>[^,;:]{{1,60}}?(?: am| are| is|'m|'re|'s)) not (?P<predicate>.+?),? {_ANY_MORE}",
        rf"^(?P<head>[^,;:]{{1,60}}? (?:are|is))n't (?P<predicate>.+?),? {_ANY_MORE}",
        rf"^(?P<head>I|we) (?:don't|do not) (?P<predicate>.+?),? {_ANY_MORE}",
        r"^(?P<head>I|we)(?:'ve| have)?(?: just)? (?:stopped|quit|gave up|given up) (?P<verb>[a-z]+)ing "
        r"(?P<predicate>.+)",
    )
)
_NO_WISH = re.compile(r"^no\b", re.IGNORECASE)
_LOSES_E = word_set(
    """liv us tak driv smok writ mak hav lov ador cod danc bak cycl rid serv receiv commut schedul releas hat
    hom leas advis manag organis organiz stor tast cultivat practis practic exercis shar"""
)
_NOT_NUMBER = re.compile(r"\bnot (?:the )?(\d[\d.,]*)\s?(k\b)?", re.IGNORECASE)


def erased_topic(sentence: str, turn: str) -> str | None:
    """Return the topic that a sentence asks to erase, or None. "Delete that" takes its topic from the same turn."""
    plain = sentence.replace("’", "'")
    for pattern in _ERASE:
        request = pattern.search(plain)
        if request and not _NO_TOPIC.match(request["topic"]):
            return request["topic"].strip()
    topic = _TOLD_ABOUT.search(turn.replace("’", "'")[:4_000]) if _DELETE.search(plain) else None
    return topic["topic"].strip() if topic else None


@dataclass(frozen=True, slots=True)
class WithdrawnClaim:
    """A claim that its speaker takes back. `is_denied` if it was never true, else it is over or to be erased."""

    act: SpeechAct
    claim: str
    is_denied: bool = False

    @property
    def cue(self) -> Cue | None:
        """How the withdrawal relates to what was said before."""
        if self.act is SpeechAct.ERASE:
            return None
        return Cue.CORRECTION if self.is_denied else Cue.CHANGE


def find_withdrawal(clause: str) -> WithdrawnClaim | None:
    """Return the claim that a trimmed clause asks to forget, denies, or says is over; None if there is none."""
    for pattern in _FORGET:
        if match := pattern.match(clause):
            return WithdrawnClaim(SpeechAct.ERASE, match["claim"])
    for pattern in _DENY:
        if match := pattern.match(clause):
            return WithdrawnClaim(SpeechAct.RETRACT, match["claim"], is_denied=True)
    for pattern in _ENDED:
        if (match := pattern.match(clause)) and not _NO_WISH.match(clause):
            verb = _verb(match.groupdict().get("verb"))
            return WithdrawnClaim(SpeechAct.RETRACT, f"{match['head']} {verb}{match['predicate']}")
    return None


def _verb(stem: str | None) -> str:
    """Return the verb of an -ing form without its ending, and a space: "us" gives `use `, "be" gives `am `."""
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
    """Return the sentence as a request: "Could you forget that ...?" becomes "forget that ..."."""
    return _REQUEST_AS_QUESTION.sub("", sentence).rstrip("? ") if _REQUEST_AS_QUESTION.match(sentence) else sentence


def is_correction(text: str) -> bool:
    """Return whether a sentence corrects what its speaker said before."""
    return bool(_CORRECTION.search(text.replace("’", "'")))


def cue(text: str, *, is_correcting: bool) -> Cue | None:
    """Return whether a sentence corrects or changes what was said before; None if it does neither."""
    if is_correcting or is_correction(text):
        return Cue.CORRECTION
    return Cue.CHANGE if _CHANGE.search(text) else None


def denied_numbers(sentence: str) -> set[str]:
    """Return the numbers that a sentence says are wrong ("3.2k, not 32k"), with thousands written out."""
    return {_plain_number(digits.strip(".,") + thousand) for digits, thousand in _NOT_NUMBER.findall(sentence)}


def _plain_number(text: str) -> str:
    """Return a number with thousands written out: "32k", "32,000" and "32 000" are 32000."""
    plain = re.sub(r"(?<=\d)[ , ](?=\d{3}\b)", "", text.lower())
    if plain.endswith("k"):
        try:
            return f"{float(plain[:-1].replace(',', '.')) * 1000:.0f}"
        except ValueError:
            return plain
    return plain


def numbers(text: str) -> set[str]:
    """Return the numbers in a text, each with thousands written out."""
    return {_plain_number(digits) for digits in re.findall(r"\d+(?:[ ,.]\d{3})*(?:[.,]\d+)?k?\b", text.lower())}
