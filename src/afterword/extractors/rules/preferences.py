"""Rules for preferences: likes, habits, instructions, rules of thumb. Pure."""

from __future__ import annotations

import re

from afterword.extractors.rules.rule import WEEKDAYS, Match, Rule, rule
from afterword.extractors.rules.third_person import is_past
from afterword.facts.assertions import Cue, Kind

LASTING = (
    r"(?:from (?:now|then|today|this \w+|next \w+|the \w+(?: \w+)?|\d[\w.]*(?: \w+)?) on"
    r"(?=$|[,.!;)]|\s(?:I|we|he|she|it|they|the|all|please|that|and|you|no|only)\b)"
    r"|no exceptions|as a rule|at all times|in everything|for everything)"
)
WANTS = "{I} wants: {c}"

_POINTING = (
    r"(?:it|that|this|them|these|those|him|her|you|your|one|what|so|both|all|how|when|where|everyone|"
    r"everything|someone)\b"
)
_NOT_A_THING = re.compile(rf"^{_POINTING}", re.IGNORECASE)
_NOT_LIKED = re.compile(
    rf"^(?:{_POINTING}|(?:the|my|our|mrs?|being|seeing|hearing|a look|to (?:help|see|hear|know|just))\b)", re.IGNORECASE
)
_CHATTER = re.compile(
    r"^(?:know|think|mind|understand|care|see|remember|get|believe|feel|mean|suppose|guess|say|look|hear|even|"
    r"really|wonder|hope|"
    r"have (?:time|any|a|to|no)|want to|like|love|need to|forget|enjoy|find)\b",
    re.IGNORECASE,
)
_INSTRUCTION = (
    r"(?:use|include|add|start|end|provide|write|format|specify|confirm|report|keep(?! going| up| in)|quote|send|"
    r"check|ask|give|put|make|call|answer|"
    r"reply|respond|tell|show|mention|cite|combine|prioriti[sz]e|maintain|tailor|annotate|import|avoid|leave|book|"
    r"plan|cook|print|"
    r"spell|round|sort|return|validate|test|log|document|describe|explain|summari[sz]e|list|name|prefix|wrap|"
    r"convert|copy|sign|"
    r"address|translate|schedule|deploy|merge|push|touch|change|delete|share|buy|order|offer|suggest|assume|stick "
    r"to|begin|turn)"
)
_NOTHING = (
    r"(?!idea|problem|worries|need|thanks|doubt|way|one|longer|matter|wonder|hurry|rush|offen[cs]e|pressure|clue|"
    r"reason|news|"
    r"question|sir|more|to|no|not|but|we|i|it|he|she|they|that|opinion|plans?)\b"
)
_FOR_GOOD = re.compile(
    rf"\b(?:{LASTING}|any ?more|ever|everywhere|at all|exceptions?|never|and no|in which|until|either|in anything)\b",
    re.IGNORECASE,
)
_LABEL_CUE = re.compile(
    rf"\b(?:never|always|only|none|please|not|at most|at least|max|everywhere|{WEEKDAYS}|weekdays|weekends)\b|^no\b",
    re.IGNORECASE,
)
_NO_LABEL = re.compile(
    r"^(?:question|task|status|agenda|topic|note|ps|p\.s|example|problem|bad|good|two|three|one|something|anyway|"
    r"idea|update|"
    r"subject|re|fwd|todo|proposal|hint|reminder|news|verdict|summary|context|result|so far|i|i'm|we|he|she|it|"
    r"that|this|thanks|"
    r"everyone|steps?|option|answer|point|error|warning|hi|hello|dear|remember|and|or|but|what|there|you|let|can|"
    r"the thing)\b",
    re.IGNORECASE,
)
_FEWEST_WORDS_OF_A_CASE = 6
_SAYS_SOMETHING = re.compile(r"\b(?:I|we|you|he|she|they|it|is|are|was|were|has|have|said|told)\b", re.IGNORECASE)
OTHERS_SUBJECT = re.compile(r"\b(?:he|she|they|it)\b", re.IGNORECASE)


def is_thing(match: Match, _text: str) -> bool:
    """Return whether the value names something itself, and does not point at something said before."""
    return not _NOT_A_THING.match(match["v"])


def is_habit(match: Match, _text: str) -> bool:
    """Return whether the value is a verb of the present that says what someone does."""
    verb = match["v"].split()[0].lower()
    return not _CHATTER.match(match["v"]) and not _NOT_A_THING.match(match["v"]) and not is_past(verb)


def _is_liked(match: Match, _text: str) -> bool:
    return not _NOT_LIKED.match(match["v"]) and not re.search(r"\b(?:you|your|that|this)\b", match["v"])


def _is_lasting(match: Match, text: str) -> bool:
    return bool(_FOR_GOOD.search(match["v"])) and not OTHERS_SUBJECT.search(text[: match.start("v")])


def _is_label(match: Match, _text: str) -> bool:
    return not _NO_LABEL.match(match["a"]) and not _SAYS_SOMETHING.search(match["a"])


def _is_rule(match: Match, text: str) -> bool:
    return _is_label(match, text) and bool(match["please"] or _LABEL_CUE.search(match["v"]))


def _is_dated_rule(match: Match, _text: str) -> bool:
    return bool(_LABEL_CUE.search(match["v"]))


def _is_wish_for_good(_match: Match, text: str) -> bool:
    return bool(
        re.search(rf"\b(?:{LASTING}|at most|max|always|never|ever|in everything|for me)\b", text, re.IGNORECASE)
    )


def _says_enough(match: Match, text: str) -> bool:
    others = len(text.split()) - len(match["cue"].split())
    is_cut = others < _FEWEST_WORDS_OF_A_CASE and re.match(rf"(?i)(?:{LASTING},? )?(?:when|if|for|in|while|as)\b", text)
    return others >= 1 and not is_cut and not OTHERS_SUBJECT.search(text)


_P = Kind.PREFERENCE
LIKES: tuple[Rule, ...] = (
    rule(r"\b(?:I|we)(?:'d| would)? (?:like to )?(?:plan|aim) for (?P<v>\d[^,;]{0,60})", _P, "goal"),
    rule(
        r"\b(?:I|we)(?:'d| would) (?:much |really )?(?:rather|prefer|like to (?:go with|stick to))(?: to)? "
        r"(?P<v>[^;]{2,120})",
        _P,
        check=is_thing,
    ),
    rule(r"\b(?:I|we) (?:much |strongly |really |always |also )?prefer (?P<v>[^;]{2,120})", _P, check=is_thing),
    rule(
        r"\bI'll (?:always )?take (?P<v>(?:a|an|the) [^,;]{2,60}?) (?:whenever|every time|always)\b",
        _P,
        None,
        "{I} always takes {v} if there is one",
    ),
    rule(
        r"^(?:personally,? )?(?:I|we) (?:really |absolutely |also |quite |do )?(?:like|love|enjoy|adore) "
        r"(?P<v>[^,;]{3,80})",
        _P,
        check=_is_liked,
    ),
    rule(
        r"^(?:personally,? )?(?:I|we) (?:really |absolutely |also |do )?(?:hate|dislike|detest|loathe|can't stand|"
        r"cannot stand|can't bear|"
        r"don't like|do not like) (?P<v>[^,;]{3,80})",
        _P,
        check=_is_liked,
    ),
    rule(r"^doesn't like: (?P<v>[^,;.]{3,80})", _P, None, "{I} does not like {v}", sentence=True),
)
HABITS: tuple[Rule, ...] = (
    rule(r"^(?:[\w'-]+ ){0,3}(?:I|we) always (?P<v>[a-z]+ [^;]{2,100})", _P, check=is_habit),
    rule(r"\b(?:I|we) never (?P<v>[a-z]+ [^;]{2,100})", _P, check=is_habit),
    rule(
        r"\b(?:I|we) (?:don't|do not) (?P<v>(?:do|take|eat|drink|work|answer|use|fly|drive|smoke|travel|accept|"
        r"attend|deploy|book|schedule|release|"
        r"own|allow|sell|offer|buy)\b [^;]{2,100})",
        _P,
        check=is_thing,
    ),
    rule(r"\bwe (?:have|had) no (?P<v>[^,;]{3,60}) and never had", Kind.ENTITY),
)
INSTRUCTIONS: tuple[Rule, ...] = (
    rule(
        r"^(?:please )?(?:always )?keep (?:your |all |the )?(?P<a>answers|replies|responses|messages|e?mails|summaries|"
        r"explanations) (?P<v>[a-z][^,;]{2,60}?)(?:,? (?:always|from now on))?$",
        _P,
        None,
        "{I} wants {a} kept {v}",
        check=_is_wish_for_good,
    ),
    rule(r"\bwrite to me in (?P<v>(?-i:[A-Z])\w+)", _P, "language_of_letters", "{I} wants to be written to in {v}"),
    rule(rf"^(?P<v>(?:always|never) {_INSTRUCTION}\b [^;]{{3,140}})", _P, None, "{I} wants the assistant to {v}"),
    rule(
        r"^(?P<v>(?:please )?(?:don't|do not) ever [a-z]+ [^;]{3,120})",
        _P,
        None,
        "{I} asks: {v}",
        check=_is_liked,
    ),
    rule(
        rf"^(?:please )?(?P<v>{_INSTRUCTION}\b [^;]{{3,120}})",
        _P,
        None,
        "{I} wants the assistant to {v}",
        check=_is_wish_for_good,
    ),
    rule(
        r"^(?P<a>(?!that|this|it|there|they|you|he|she|we|i\b|what|who|which)[a-z][\w -]{2,30}) should (?:always |"
        r"never )?be (?P<v>[^,;]{2,60})",
        _P,
        None,
        "{I} wants {a} to be {v}",
        check=_is_label,
    ),
)
RULES_OF_THUMB: tuple[Rule, ...] = (
    rule(
        rf"^no (?P<v>{_NOTHING}[a-z][^;:]{{2,60}}?) any ?more\b",
        _P,
        None,
        "{I} no longer wants {v}",
        cue=Cue.CHANGE,
        sentence=True,
    ),
    rule(
        rf"(?:^|[:,] )(?P<v>no {_NOTHING}[a-z][^;:]{{2,140}})",
        _P,
        None,
        "{I} wants {v}",
        sentence=True,
        check=_is_lasting,
    ),
    rule(
        r"^(?P<a>(?:from|until|since|in|for) [\w' ]{2,45}?): (?P<v>.{3,200})",
        _P,
        None,
        "{I}'s rule {a}: {v}",
        sentence=True,
        check=_is_dated_rule,
        by_value=True,
    ),
    rule(
        r"^(?:on )?(?P<a>[A-Za-z][\w' -]{2,45}?)(?P<please> please)?: (?P<v>.{3,200})",
        _P,
        None,
        "{I}'s rule for {a}: {v}",
        sentence=True,
        check=_is_rule,
    ),
    rule(
        r"(?:^|: )(?P<v>only [a-z]+ (?:with|without|in|from|on|for|after|before|by) [^;:]{3,80})",
        _P,
        None,
        "{I} wants {v}",
        sentence=True,
    ),
    rule(
        r"^(?P<v>(?!I |we |he |she |it |they |that |this |not )[a-z' -]{3,30} only (?:after|before|on|in|for|with|"
        r"from|at) [^;]{3,100})",
        _P,
        None,
        "{I} wants {v}",
        check=is_thing,
    ),
    rule(
        r"^(?P<v>(?:whoever|everyone else|everybody else|all other|every new|each new)\s.{5,140})",
        Kind.DECISION,
        None,
        "{v}",
        sentence=True,
    ),
)
FROM_NOW_ON: tuple[Rule, ...] = (
    rule(rf"^[^;]{{0,160}}\b(?P<cue>{LASTING})", _P, None, WANTS, cue=Cue.CHANGE, check=_says_enough),
    rule(
        r"\bso it's (?P<v>(?!over|time|not|all|ok|okay|fine|good|better|gone|late|done|my|your|too|up|down|"
        r"back)[a-z]+) now\b",
        _P,
        None,
        "{I} now uses {v}: {c}",
        cue=Cue.CHANGE,
        sentence=True,
    ),
)
