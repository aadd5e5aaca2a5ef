"""Decide which sentences are not read as statements of their speaker. When in doubt, a sentence is left out. Pure."""

from __future__ import annotations

import re

from afterword.facts.words import phrase_pattern

_EXEMPT = phrase_pattern(
    r"I(?:'d| would) (?:like|prefer|rather|much rather)",
    r"(?:I|we)(?: have| had|'ve|'d)?(?: already| just| never)? (?:said|told (?:you|u)|asked you)",
    r"(?:I|we) (?:didn't|did not|haven't|have not) (?:say|said|tell you|told you|claim|claimed)",
    r"my (?:doctor|physio|surgeon|dentist|physiotherapist|dietician|cardiologist|GP)(?: \w+)? says",
    r"check if|even if|as if",
)
_HYPOTHETICAL = phrase_pattern(
    "if|would|could|might|maybe|perhaps|possibly|probably|hypothetical(?:ly)?|imagine|suppose|supposing|"
    "dream(?:ing|s)?",
    "I doubt|unless|wish|hope|hopefully|wonder|wondering|considering|guess|lottery|what about|how about|let's see|"
    "dunno",
    r"one day|some day|someday|sooner or later|(?:think|thinking) (?:about|of)|not sure|no idea|don't know|I "
    r"think|I thought",
    r"let me (?:think|sleep|look|see|check)|(?-i:may)|trying to|tempted|theoretically|in theory|ever win|thinks?|"
    r"would've|[a-z]+'d|should (?:I|we)",
)
_JOKING = re.compile(
    r"[;:]-?[)DP](?!\w)|[\U0001F300-\U0001FAFF]|(?i:\b(?:haha\w*|hehe\w*|lol|lmao|rofl|xd|just kidding|jk|not!|"
    r"yeah,? right"
    r"|as if|sure, and|what could possibly|thanks a (?:bunch|lot)|my absolute favou?rite|can't wait|just love|so "
    r"much fun"
    r"|absolutely,)\b)|\b(?:LOVE|ADORE|YES)\b|/s$",
)
_REPORTED = phrase_pattern(
    "says?|said|thinks|claims?|claimed|swears?|reckons?|told|tells|asked|asks|wrote|suggests?|suggested|recommends?",
    "recommended|heard|apparently|allegedly|according to|believes?|supposedly|insists?|complained",
)
_PASSING = phrase_pattern(
    r"(?<!from )today|tonight|right now|at the moment|this (?:minute|second|morning|afternoon|evening|week|weekend)",
    r"craving|in the mood|for now|yesterday|last night|for the moment|I'm (?:so |a bit |really )?(?:tired|hungry|"
    r"sleepy|exhausted)|just this once|grumpy",
    r"(?:only )?that week|currently waiting|a second|one sec|brb",
)
_SECRET = re.compile(
    r"(?i:\b(?:passwor[dt]|passphrase|passcode|pin|cvc|cvv|iban|token|api[ -]?keys?|secret|credentials?|card "
    r"number|my card|"
    r"ssn|social security|private key|lockbox|login|DATABASE_URL|one-time code|code is)\b)|\b\d(?:[ -]?\d){8,}"
    r"|\b(?=[\w-]{0,40}\d)(?=[\w-]{0,40}[A-Za-z])[\w-]{16,}|://",
)
_ROLE_STARTS = phrase_pattern(
    r"pretend(?:ing)?|role-?play(?:ing)?|stay in (?:the |your )?(?:role|character)|in character|I'll play|I will "
    r"play|in the story",
    r"as if you were|let's play|play the (?:role|part)|in a parallel universe|my character",
)
_ROLE_ENDS = phrase_pattern(
    r"out of (?:the |my |your )?(?:role|character)|back to (?:reality|work|business)|end of (?:the )?(?:role|"
    r"story|game)",
    r"stop (?:the )?(?:role|pretending)|enough (?:role|pretending)",
)
_DICTATED = re.compile(
    r"^(?:(?:please|can you|could you|now|and|so|ok|then)[, ]+){0,3}(?:"
    r"(?:write|compose|draft|sing|make up|invent|create|generate|begin|start|tell)\b.*\b(?:(?:start|begin|end|open)"
    r"(?:s|ing)? (?:with|by)|saying|(?:that|which) says|containing|titled|about how|in which"
    r"|(?:sentence|words|line|phrase))\b"
    r"|(?:translate|say|repeat|spell|pronounce|write) (?:I|I'm|we|my)\b)",
    re.IGNORECASE,
)


def is_excluded(sentence: str) -> bool:
    """Return whether a sentence must not be read as a statement of its speaker.

    Excluded are questions, hypotheticals, hedges, jokes, reports of others' words, passing states, secrets, dictated
    text, and tables or code.
    """
    if "?" in sentence or sum(sentence.count(sign) for sign in "{}|") > 1:
        return True
    plain = _EXEMPT.sub(" ", sentence.replace("’", "'"))
    return any(guard.search(plain) for guard in (_HYPOTHETICAL, _JOKING, _REPORTED, _PASSING, _SECRET, _DICTATED))


def is_role_play_after(sentence: str, was_role_play: bool) -> bool:
    """Return whether the speaker is playing a role after this sentence."""
    if _ROLE_ENDS.search(sentence):
        return False
    return was_role_play or bool(_ROLE_STARTS.search(sentence))
