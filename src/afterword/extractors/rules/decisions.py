"""Rules for decisions and changes, and for numbers, limits, names and sources. Pure."""

from __future__ import annotations

import re

from afterword.extractors.rules.preferences import is_thing
from afterword.extractors.rules.rule import AMOUNT, PROPER, WEEKDAYS, Match, Rule, rule
from afterword.extractors.rules.vocabulary import NUMBERS
from afterword.facts.assertions import Cue, Kind, SpeechAct
from afterword.facts.words import word_set

_P, _D, _E = Kind.PREFERENCE, Kind.DECISION, Kind.ENTITY
_PERIOD = r"(?:night|day|week|month|year|hour|person|head|kilo|kg|litre|piece)"
_LIMIT = (
    r"(?:max(?:imum)?\.?|at most|no more than|not more than|never more than|up to|stay under|stay below|keep "
    r"(?:it )?under|not over)"
)
_PRONOUN = re.compile(
    r"(?i)^(?:(?:and|so|that|but|if|when) )?(?:i|we|he|she|it|they|that|this|you|who|which|there|people|one|"
    r"someone|everyone)\b"
)
_HAS_NO_SOURCE = word_set(
    """i he she it they we that this who which there letter mail person guy man woman all one friend family quote news
    message idea people you"""
)
_STATE = re.compile(
    r"(?i)\b(?:dead|weird|broken|bad|good|great|fine|sick|ill|gone|late|empty|full|sore|annoyed|amused|happy|"
    r"awesome|amazing|best|top|"
    r"same|one|thing|reason|problem|aspect|way|lot)\b"
)
_NOT_NAMED = re.compile(
    r"(?i)^(?:it|that|this|there|he|she|they|what|who|here|everything|everyone|nobody|nothing|question|same|one|"
    r"both|all|which|you|how|"
    r"where|when|life|next|problem|idea|thing|point|truth|today|tomorrow|\w+day|status|we|i|these|those|my|our|"
    r"most|some|many|such|"
    r"by|for|with|from|in|on|at|after|before|during|if|and|but|so|or|no|yes)\b"
)
_OWNED = (
    r"(?:car|bike|phone|laptop|computer|tablet|router|printer|house|flat|boat|van|camera|dog|cat|kiln|oven|bank|"
    r"shell|editor|browser|"
    r"tractor|piano|guitar|sofa|dishwasher|heating|boiler|hub|modem|keyboard|monitor)"
)


def _names_something(match: Match, _text: str) -> bool:
    return not _PRONOUN.match(match["a"])


def _is_source(match: Match, _text: str) -> bool:
    return match["s"].split()[-1].lower() not in _HAS_NO_SOURCE


def _is_named_thing(match: Match, text: str) -> bool:
    return not _NOT_NAMED.match(match["a"]) and not _STATE.search(match["v"]) and len(text.split()) <= 28


def _is_counted_noun(match: Match, _text: str) -> bool:
    return not re.match(r"(?i)(?:times?|hours?|minutes?|nights?|in|of|a|an)\b", match["a"])


def _names_a_choice(match: Match, _text: str) -> bool:
    return is_thing(match, _text) and not re.search(r"(?i)\b(?:this|that|it|following|a break|nothing)\b", match["v"])


_CASE = r"(?:the|this|that|our|my) (?:(?:whole|next|entire) )?[a-z]+"
_NOUN = (
    r"(?:train|bus|coach|ferry|boat|flight|plane|car|taxi|tram|metro|hotel|hostel|room|apartment|cabin|seat|table|tour|"
    r"ticket|option|plan|route|road|offer|course|package|venue|hall|supplier|quote|contract)"
)
_BUDGET, _IS = r"^(?:my |our |the )?budget", r"(?:is|stays|must be|should be|must stay)"
_SUM = rf"(?P<v>(?:(?:{_LIMIT}|under|below|about|around|roughly) )?{AMOUNT}\s?[a-z€$£]{{0,8}})"
USED = rule(r"^(?:I|we) (?:also |now |only |mostly )?use (?P<v>[^,;]{2,60})", _E)
"""What someone uses. Applied only to withdrawals, because a single use is no lasting fact."""


CHANGES: tuple[Rule, ...] = (
    rule(
        r"^(?:(?:I|we) take (?:it|that|this) back|change of plans?)[,:] (?P<v>.{8,160})",
        _D,
        "choice",
        "{I} decided: {v}",
        cue=Cue.CHANGE,
        sentence=True,
        by_value=True,
    ),
    rule(
        r"\b(?:I|we)(?:'ve| have) (?:just )?(?:moved|changed|switched|set|put|raised|lowered) (?:my|our|the) "
        r"(?P<a>[\w -]{2,40}?) "
        r"to (?P<v>[^;]{2,80})",
        _D,
        cue=Cue.CHANGE,
    ),
    rule(
        r"\b(?:I|we)(?:'ve| have)?(?: just)? (?:switched|changed|moved over) (?:from [^,;]{2,30} )?to "
        r"(?P<v>[^,;]{2,60})",
        _E,
        cue=Cue.CHANGE,
        check=is_thing,
    ),
    rule(
        r"^(?P<a>[\w ]{3,40}) goes (?:up |down )?from (?P<w>[^,;]{1,30}) to (?P<v>[^,;]{1,40})",
        _D,
        cue=Cue.CHANGE,
        check=_names_something,
    ),
    rule(r"\bI(?:'m| am) on (?P<v>(?:day|night|early|late|morning) shifts?)", _E, "shift", cue=Cue.CHANGE),
    rule(r"^since .{3,25}? (?:I|we) (?:have|drive|use|own) (?P<v>[^;:]{2,100})", _E, cue=Cue.CHANGE, sentence=True),
)
RETRACTIONS: tuple[Rule, ...] = (
    rule(
        r"\b(?:I|we) (?:don't|do not) (?P<v>(?!know|think|have|want to|see|care)[a-z]+ [^,;]{2,60}?) any ?more\b",
        _P,
        act=SpeechAct.RETRACT,
        cue=Cue.CHANGE,
    ),
    rule(r"\b(?:I|we) no longer (?P<v>[a-z]+ [^,;]{2,60})", _P, act=SpeechAct.RETRACT, cue=Cue.CHANGE),
    rule(
        r"\b(?:I|we)(?:'ve| have)? (?:stopped|quit|gave up|given up) (?P<v>[a-z]+ing\b[^,;]{0,60})",
        _P,
        act=SpeechAct.RETRACT,
        cue=Cue.CHANGE,
    ),
    rule(
        r"\b(?:we're|we are|I'm|I am) off (?P<v>(?:the )?(?!to|on|for|sick|work|today|duty|until|next|now|"
        r"again)[a-z]+[^,;.]{0,40})",
        _P,
        None,
        "{I} no longer has {v}",
        act=SpeechAct.RETRACT,
        cue=Cue.CHANGE,
    ),
)
NUMBERED: tuple[Rule, ...] = (
    rule(rf"{_BUDGET} for (?P<case>{_CASE}) {_IS} {_SUM}$", _P, "budget", "{us}'s budget for {case} is {v}"),
    rule(rf"{_BUDGET} {_IS} {_SUM} for (?P<case>{_CASE})$", _P, "budget", "{us}'s budget for {case} is {v}"),
    rule(rf"{_BUDGET} {_IS} {_SUM}$", _P, "budget", "{us}'s budget is {v}"),
    rule(
        rf"(?P<v>{AMOUNT}[^,;]{{0,40}}?) (?:a|per) (?P<period>{_PERIOD})\b[^,;]{{0,40}} is (?:my|our) (?:ceiling|"
        rf"limit|max|maximum|budget)\b",
        _P,
        "budget",
    ),
    rule(
        rf"\b{_LIMIT} (?P<v>{AMOUNT}[^,;]{{0,40}}?)\s(?:a|per) (?P<period>{_PERIOD})\b",
        _P,
        "budget",
        "{I}'s limit: {c}",
    ),
    rule(
        rf"\b(?:max(?:imum)?\.?|at most|no more than|not more than|never more than) (?P<v>(?:{AMOUNT}|"
        rf"(?:{NUMBERS})\b)\s?(?P<a>[a-z]+))",
        _P,
        None,
        "{I}'s limit: {c}",
    ),
    rule(rf"\b(?P<v>{AMOUNT}(?P<a>[a-z]+)) (?:at most|max|maximum)\b", _P, None, "{I}'s limit: {c}"),
    rule(
        rf"\b(?:my |our |the )?budget (?:is|of|about|around)\b[^,;]{{0,20}}?(?P<v>{AMOUNT}[^,;]{{0,30}})",
        _P,
        "budget",
        "{I}'s limit: {c}",
    ),
    rule(
        rf"\b(?P<v>(?:about |around |roughly )?(?:{AMOUNT}|(?:{NUMBERS})\b)\s?(?P<a>[a-z]{{1,12}})(?: of [a-z]+)? "
        rf"(?:a|an|per) (?P<period>{_PERIOD}))\b",
        _E,
        None,
        "{I}'s figure: {c}",
        check=_is_counted_noun,
    ),
    rule(
        rf"^(?P<a>[a-z][\w ]{{2,30}}) (?:needs?|requires?|has to have|must have) (?P<v>(?:{AMOUNT}|"
        rf"(?:{NUMBERS})\b)\s?[a-z]+[^,;]{{0,60}})",
        _D,
        check=_names_something,
    ),
    rule(r"\b(?P<a>[a-z]\w{1,20} [a-z]\w{1,20}) (?:has|have) to (?P<v>stay [^;]{2,60})", _D, check=_names_something),
    rule(
        rf"\b(?:we|I) (?:take|charge|ask for|require|offer|give|pay) (?P<v>(?:a |an )?(?:(?P<a>[a-z]+) of "
        rf")?{AMOUNT}[^;]{{2,60}})",
        _D,
    ),
)
DECISIONS: tuple[Rule, ...] = (
    rule(
        rf"^(?:let's|let us|(?:I|we)(?:'ll| will)) (?:take|book|choose|pick) "
        rf"(?P<v>(?:the|that) (?:[a-z-]+ ){{0,3}}(?P<a>{_NOUN}))(?P<when>(?: (?:on|at|from|to|of|in)\b[^;]{{2,60}})?)$",
        _D,
        None,
        "{us} takes {v} {when}",
        event=True,
    ),
    rule(
        r"^(?:let's|let us|(?:I|we)(?:'ll| will)) (?:take|book) "
        r"(?P<v>the \d{1,2}[:.]\d\d(?: (?:[a-z]+))?)(?P<when>(?: (?:on|at|from|to)\b[^;]{2,60})?)$",
        _D,
        "choice",
        "{us} takes {v} {when}",
        event=True,
    ),
    rule(
        r"\b(?:I|we|let's|let us)(?:'ll| will|'ve| have)? (?:go|went|going|gone|stick|stay|sticking|renew|renewed|"
        r"sign|signed) (?:with|for) "
        r"(?P<v>[^,;]{2,60})",
        _D,
        "choice",
        check=_names_a_choice,
    ),
    rule(
        r"\b(?:I|we)(?:'ve| have)? (?:decided|settled|agreed|chosen|chose|opted) (?:on |to |for |that |against "
        r")?(?P<v>[^;]{3,100})",
        _D,
        "choice",
        check=_names_a_choice,
    ),
    rule(
        rf"\b(?:I|we|let's)(?:'ll| will)? (?:take|took|book|booked|choose|pick|picked|use|keep|drop|dropped|go to|"
        rf"do|bought) "
        rf"(?P<v>(?:the )?{PROPER}[^;]{{0,60}})",
        _D,
        "choice",
        check=_names_a_choice,
    ),
    rule(
        rf"\b(?:I|we)(?:'ve| have)?(?: just)? (?:signed up for|registered for|enrolled in|fixed|booked) "
        rf"(?P<v>(?:the )?{PROPER}).{{0,120}}",
        _D,
        "plan",
        sentence=True,
        event=True,
    ),
    rule(rf"^book (?P<v>{PROPER})$", _D, "choice", "{I} wants to book {v}"),
    rule(
        rf"^(?P<a>(?:the |our |my )?[a-z][\w.-]{{2,20}}) (?:runs on|is on|uses|stays on|will use) "
        rf"(?P<v>{PROPER}(?: \d+)?(?:, not {PROPER})?)",
        _D,
        "platform",
        check=_names_something,
    ),
    rule(
        r"\b(?P<v>[^;:]{4,120}), (?:that's|it's|this is) (?:decided|settled|fixed|final)\b", _D, "choice", sentence=True
    ),
)
AGREED = rule(r"^(?P<v>(?!(?:I|he|she|it|they|you|that|this)\b)[^;:]{8,160})$", _D, "choice", "{I} agreed: {v}")
"""What follows a bare "Agreed." or "Decided.". Applied if no other rule matches."""

DESCRIPTIONS: tuple[Rule, ...] = (
    rule(
        rf"\b(?P<s>(?:the |our |my )?[a-z]+(?: [a-z]+)?) (?:is|are|comes?) from (?P<v>{PROPER})",
        _E,
        "source",
        check=_is_source,
    ),
    rule(
        rf"\b(?P<s>(?:the |our |my )[a-z]+(?: [a-z]+)?) (?:is|are) (?:now )?(?:called|named) (?P<v>{PROPER})",
        _E,
        "name",
    ),
    rule(
        rf"^(?:my|our) (?P<a>(?:favou?rite )?[a-z]+(?: [a-z]+)?) (?:is|are) (?P<v>(?:now )?(?:an? )?(?:{PROPER}|\d|"
        rf"[a-z]+(?= now$))[^;]{{0,60}})",
        _E,
        None,
        "{I}'s {a} is {v}",
        check=_is_named_thing,
    ),
    rule(
        rf"^(?:my |our |the )?(?P<a>{_OWNED}) is (?P<v>an? [^;]{{2,100}})",
        _E,
        None,
        "{I}'s {a} is {v}",
        check=_is_named_thing,
    ),
    rule(
        r"^(?:my |our |the )?(?P<a>(?:new )?(?:goal|aim|plan|target)) is (?P<v>to [^;]{2,100})",
        _E,
        None,
        "{I}'s {a} is {v}",
    ),
    rule(
        rf"^(?:the |my |our )?(?P<a>(?-i:[A-Z])[a-z]+(?: [a-z]+)?(?: (?:for|of) [a-z]+)?|(?:new )?deadline(?: for "
        rf"[a-z]+)?) is (?P<v>(?:the (?:last|first|second|third)|{WEEKDAYS}|on {WEEKDAYS}|"
        rf"at \d|\d)[^;]{{2,100}})",
        _E,
        None,
        "{I}'s {a} is {v}",
        check=_is_named_thing,
    ),
    rule(rf"^(?P<s>{PROPER}) (?P<v>costs? {AMOUNT}[^;:]{{2,60}})", _E, "price", sentence=True),
    rule(rf"^(?P<s>{PROPER}) is .{{3,60}}?, (?P<v>{AMOUNT}[a-z]+ an? [a-z]+.{{0,40}})", _E, "price", sentence=True),
)
