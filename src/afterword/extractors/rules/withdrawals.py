"""Find withdrawals: requests to forget something, denials, and statements that something is over. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

from afterword.extractors.rules.vocabulary import GERUNDS
from afterword.facts.assertions import Cue, SpeechAct
from afterword.facts.words import terms

_ASK = r"(?:(?:can|could|will) you (?:please )?|(?:I|we)(?:'d| would)? (?:like|want) you to )?(?:please )?(?:just )?"
_SHARED = r"I(?:'ve| have)? (?:just )?(?:told|said|mentioned|wrote|shared)(?: to)?(?: you)?"
_OWN = r"(?:I|I'm|I've|we|we're|we've|my|our)\b.+"
_TOPIC = re.compile(
    rf"(?i){_ASK}(?:forget|delete|erase) (?:(?:everything |all )?(?:what|that)? ?{_SHARED} about (?P<about>[\w' -]+)|"
    rf"(?:that|the|this|my|our) (?P<topic>[\w' -]+?) (?:thing|story|business|{_SHARED})(?: {_SHARED})?)"
)
_FORGET = re.compile(
    rf"(?i){_ASK}(?:(?:forget|(?:don't|do not) remember) (?P<own>{_OWN})|(?:forget|erase|delete|stop remembering|"
    r"(?:don't|do not|never) (?:remember|store|save|keep|note|record))(?: the fact)? that (?P<claim>.+))"
)
_ABOUT = "about (?:me|us)(?: completely| entirely)?"
_EVERYTHING = re.compile(
    rf"(?i){_ASK}(?:forget|delete|erase|wipe|remove) (?P<topic>(?:everything|all|anything)(?: (?:that )?(?:you (?:know|"
    rf"have|remember|(?:have )?(?:stored|saved|kept|learned|learnt))|{_SHARED}))?(?: {_ABOUT})?|"
    r"(?:me|us)(?: completely| entirely)?|all (?:of )?(?:my|our) (?:data|memories|notes|information))"
)
POINTING_BACK = re.compile(
    rf"(?i){_ASK}(?:forget|erase|delete|(?:don't|do not) (?:remember|store|save|keep)) (?:that|this|"
    rf"(?:that|what) {_SHARED}(?: that| this)?)"
)
"""Matches a sentence without lead that asks to forget what was just said ("forget that")."""
# "Delete that file" is not about memory, and "forget that you have doubts" is not about what a person said.
_OTHER_THING = re.compile(
    rf"(?i){_ASK}(?:(?:erase|delete) that (?!{_OWN})|[\w' ]{{4,20}}?(?: the fact)? that (?:you|your|it|this|there)\b)"
)
# Words that do not identify a topic. A topic needs at least one other word.
_SAYS_LITTLE = frozenset(terms("said say tell told mentioned wrote thing something anything stuff"))
_DENIED = re.compile(
    r"(?i)(?:(?:that's wrong, )?it(?:(?:'s| is) (?:not (?:true|the case)|untrue|false|wrong)| isn't true),? that|I"
    rf"(?: have|'ve)? never (?:said|told you)(?: that)?|I (?:didn't|did not) say(?: that)?) (?P<claim>{_OWN})"
)
_ENDED = re.compile(
    r"(?i)(?P<head>.{1,40}?)(?: (?:no longer|no more) (?P<over>.+)| not (?P<not>.+?),? any ?(?:more|longer)|"
    r" (?:don't|do not) (?P<dont>.+?),? any ?(?:more|longer))"
)
_STOPPED = re.compile(
    r"(?i)(?P<head>I|we)(?:'ve| have)?(?: just)? (?:stopped|quit|given up|gave up) (?:my job (?P<job>at .+)|"
    r"(?P<gerund>\w+ing)(?P<others> .+)?)|I(?:'ve| have)?(?: just)? (?:left my job at|resigned from) (?P<firm>.+)"
)
_NOT_SO = re.compile(
    r"(?i)(?P<head>I|we|(?:my|our) \w+(?: (?-i:[A-Z])\w+)?|(?-i:[A-Z])\w+)(?:(?P<be>'m| am|'re| are| is) not| don't|"
    r" do not) (?P<claim>(?:allergic to|live in|work (?:at|for)|vegan|vegetarian|an? (?!fan|big fan))\b.*)|"
    r"my name (?:is not|isn't) (?P<name>.+)|don't (?P<called>call me .+)"
)


class WithdrawnClaim(NamedTuple):
    """What a person takes back: a claim or topic to erase, a claim that was never true, or one that is over.

    `words` are the words of a claim to erase, used if the grammar cannot read it. `takes_all` means that everything is
    to be erased.
    """

    act: SpeechAct
    claim: str
    cue: Cue | None = None
    topic: str | None = None
    takes_all: bool = False
    words: str | None = None


def find_withdrawal(clause: str) -> WithdrawnClaim | None:
    """Return what a clause without lead asks to forget, denies, or says is over, or None if it withdraws nothing."""
    if match := _EVERYTHING.fullmatch(clause):
        return WithdrawnClaim(SpeechAct.ERASE, "", topic=match["topic"], takes_all=True)
    if match := _TOPIC.fullmatch(clause):
        return WithdrawnClaim(SpeechAct.ERASE, "", topic=match["about"] or match["topic"])
    if match := _FORGET.fullmatch(clause):
        claim = match["own"] or match["claim"]
        topic = re.sub(r"^(?:I|we)(?:'m|'re|'ve| am| are| have)? ", "", claim)
        words = _identifying_words(clause, claim)
        return WithdrawnClaim(SpeechAct.ERASE, claim, topic=topic if topic != claim else None, words=words)
    if match := _DENIED.fullmatch(clause):
        return WithdrawnClaim(SpeechAct.RETRACT, match["claim"], Cue.CORRECTION)
    if ended := _ended_claim(clause):
        return WithdrawnClaim(SpeechAct.RETRACT, ended, Cue.CHANGE)
    denied = _denied_claim(clause)
    return WithdrawnClaim(SpeechAct.RETRACT, denied) if denied else None


def _identifying_words(clause: str, claim: str) -> str | None:
    """Return the words of a claim without "I" and "my", or None if they do not identify what a person has told."""
    said = re.sub(rf"(?i)^{_SHARED}(?: that)? ", "", claim.strip(" .!?"))
    topic = re.sub(r"(?i)^(?:(?:I|we)(?:'m|'re|'ve)?|my|our|about) ", "", said)
    return topic if set(terms(topic)) - _SAYS_LITTLE and not _OTHER_THING.match(clause) else None


def _ended_claim(clause: str) -> str | None:
    """Return the claim that a clause says is over, as a clause of its own: "I no longer work" ends "I work"."""
    if match := _ENDED.fullmatch(clause.replace(" isn't ", " is not ")):
        return f"{match['head']} {match['over'] or match['not'] or match['dont']}"
    if match := _STOPPED.fullmatch(clause):
        if match["firm"]:
            return f"I work at {match['firm']}"
        verb = f"work {match['job']}" if match["job"] else GERUNDS.get(match["gerund"].lower(), "")
        return f"{match['head']} {verb}{match['others'] or ''}"
    return None


def _denied_claim(clause: str) -> str | None:
    """Return the claim that a clause denies, as a clause of its own: "I'm not vegan" denies "I'm vegan"."""
    match = _NOT_SO.fullmatch(clause.replace(" isn't ", " is not "))
    if match and match["head"]:
        return f"{match['head']}{match['be'] or ''} {match['claim']}"
    return (match["called"] or f"my name is {match['name']}") if match else None
