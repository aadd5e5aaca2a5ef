"""Rules about people: name, job, home, relations, diet, health. Pure."""

from __future__ import annotations

import re

from afterword.extractors.rules.rule import FULL_NAME, NAME, PROPER, Match, Rule, rule
from afterword.extractors.rules.vocabulary import CONDITIONS, DIETS, JOBS, LANGUAGES, RELATIONS
from afterword.facts.assertions import Cue, Kind

_NO_NAME = re.compile(
    r"^(?:(?:the|a|an|it|this|that|these|those|he|she|they|we|i|you|my|our|your|there|here|what|who|which|where|"
    r"when|why|how|let)(?:'\w+)?"
    r"|everyone|everybody|someone|somebody|nobody|nothing|anyone|one|both|all|each|every|no|not|yes|and|but|so|or|"
    r"if|also|please|since|"
    r"from|until|on|in|at|by|for|with|of|to|during|before|after|mr|mrs|ms|dr|today|tomorrow|now|then|just|only|"
    r"any|first|second|third|"
    r"next|last|new|good|great|sorry|thanks|thank|hi|hey|hello|ok|okay|wow|aww|oh|glad|congrats|same|right|over|"
    r"still|always|guten|morgen|"
    r"hallo|hola|happy|nice|cool|awesome|absolutely|yeah|yep|sure|well|dear|team|coach|agents?|"
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|feb|february|march|april|may|june|july|august|"
    r"september|october|november|"
    rf"december|christmas|easter|thanksgiving|{LANGUAGES})$",
    re.IGNORECASE,
)
_ROLES = (
    rf"(?:{JOBS}|{RELATIONS}|thesis|colleague|client|customer|supplier|tenant|member|lead|intern|trainee|"
    r"apprentice|neighbou?r|supervisor|examiner|volunteer)"
)


def is_plausible_name(name: str) -> bool:
    """Return whether the words may be a person's name: no pronoun, greeting, weekday, month or language."""
    return not any(_NO_NAME.match(word) for word in re.split(r"[\s-]", name))


def _is_name(match: Match, _text: str) -> bool:
    return is_plausible_name(match["s"])


def _is_own_name(match: Match, _text: str) -> bool:
    return is_plausible_name(match["v"])


_E, _P = Kind.ENTITY, Kind.PREFERENCE
_NAMED = "{I}'s name is {v}"
_LIVES = "{I} lives in {v}"
_SPEAKS = "{I} speaks {v}"

OWN: tuple[Rule, ...] = (
    rule(
        rf"^(?:I'm|I am|my name is|my name's|the name's)\s(?P<v>{NAME})(?=$|[,.!]|\s(?:from|and I|here|\())",
        _E,
        "name",
        _NAMED,
        check=_is_own_name,
    ),
    rule(rf"^this is (?P<v>{NAME})\s?(?=\(|speaking|here)", _E, "name", _NAMED, check=_is_own_name),
    rule(rf"^(?P<v>{NAME}) here(?=$|[,.!:])", _E, "name", _NAMED, check=_is_own_name),
    rule(rf"^I(?:'m| am| work as) (?:a|an) (?P<v>(?:[a-z-]+\s){{0,3}}(?:{JOBS}))\b", _E, "job"),
    rule(rf"\bI work (?:at|for) (?P<v>{PROPER})", _E, "employer", "{I} works at {v}"),
    rule(rf"\bI (?:own|founded|run) (?P<v>{PROPER})", _E, "business"),
    rule(
        r"^(?:\w+ ){0,3}I(?:'m| am) (?P<v>the (?:only|sole|new|one who|head|lead|main)\s[^,;]{2,60})",
        _E,
        "role",
        "{I} is {v}",
    ),
    rule(
        r"\bI(?:'m| am) (?P<v>the (?:[a-z-]+\s){0,2}(?:lead|head|manager|editor|owner|maintainer|treasurer|chair|"
        r"secretary|coach|designer|"
        r"organi[sz]er))\b",
        _E,
        "role",
        "{I} is {v}",
    ),
    rule(r"\bI(?:'ve| have) been (?P<v>the [a-z-]+(?: [a-z-]+)?) (?:from|since|for)\b", _E, "role"),
    rule(rf"\b(?:I|we) (?:now |currently )?live in (?P<v>{PROPER})", _E, "home", _LIVES),
    rule(
        rf"\b(?:I|we)(?:'ve| have)?(?: just)? moved (?:back )?to (?P<v>{PROPER})",
        _E,
        "home",
        "{I} moved to {v}",
        cue=Cue.CHANGE,
    ),
    rule(
        rf"\b(?:I'm|I am|we're|we are) (?:based|located|at home) in (?P<v>{PROPER})", _E, "home", "{I} is based in {v}"
    ),
    rule(rf"\b(?:here|home) in (?P<v>{PROPER})", _E, "home", "{I} is at home in {v}"),
    rule(
        rf"\bI(?: can| also| do)? (?:speak|am fluent in|grew up with|talk to (?:them|him|her|people) in|write "
        rf"(?:them|to them) in) "
        rf"(?P<v>(?-i:{LANGUAGES}))\b",
        _E,
        "language",
        _SPEAKS,
    ),
    rule(rf"\b(?:I'm|I am) (?:fluent|native) in (?P<v>(?-i:{LANGUAGES}))\b", _E, "language", _SPEAKS),
    rule(rf"\b(?:I'm|I am|we're|we are) (?:a |strictly |both |all )?(?P<v>{DIETS})\b", _P, "diet", "{I} is {v}"),
    rule(rf"\b(?:I|we) (?:only )?eat (?P<v>{DIETS})\b", _P, "diet"),
    rule(
        r"\b(?:I'm|I am) (?:very |severely |badly )?allergic to (?P<v>[^,.;]{2,60})",
        _E,
        "allergy",
        "{I} is allergic to {v}",
    ),
    rule(rf"\b(?:I have|I've got|I've) (?P<v>{CONDITIONS})\b", _E, "condition", "{I} has {v}"),
)
_ALLERGIC = "{s} is allergic to {v}"

OTHERS: tuple[Rule, ...] = (
    rule(
        rf"\bit(?:'s| is) (?P<v>[^,.;:]{{2,60}}?) (?:that )?(?P<s>{NAME}) is allergic to",
        _E,
        "allergy",
        _ALLERGIC,
        cue=Cue.CORRECTION,
        check=_is_name,
    ),
    rule(
        rf"(?P<s>{NAME}) is (?:very |severely |badly |also )?allergic to (?P<v>[^,.;:]{{2,60}})",
        _E,
        "allergy",
        _ALLERGIC,
        check=_is_name,
    ),
    rule(rf"(?P<s>{NAME}) has (?P<v>{CONDITIONS})\b", _E, "condition", "{s} has {v}", check=_is_name),
    rule(rf"(?P<s>{NAME})(?: from [a-z]+)? is (?:a |strictly )?(?P<v>{DIETS})\b", _P, "diet", check=_is_name),
    rule(
        rf"^(?:my|our) (?:{RELATIONS}) (?P<s>{NAME}) (?P<v>(?:is|has|works|stays)\b.{{3,100}}?\b(?:until|till|from|"
        rf"since)\s[^;]{{3,40}})",
        _E,
        "stay",
        check=_is_name,
    ),
    rule(
        rf"^(?P<s>{FULL_NAME}), (?P<v>(?:[a-z'-]+\s){{0,3}}{_ROLES}\b(?:(?!,? (?:my|our|I|he|she|it|we|"
        rf"they)\b).){{0,160}})",
        _E,
        "description",
        "{s}, {v}",
        sentence=True,
        check=_is_name,
    ),
    rule(
        rf"^(?:(?:the|my|our) )?(?P<a>(?:first |second |new |main |deputy )?(?:supervisor|editor|manager|contact|"
        rf"chair|treasurer|landlord|"
        rf"accountant|coach|doctor|dentist|lawyer|boss|head|maintainer|owner|examiner|designer|translator)) is "
        rf"(?P<v>{FULL_NAME})",
        _E,
    ),
    rule(
        rf"^(?P<s>{FULL_NAME}) (?P<v>(?:is (?:a|an|the|responsible|in charge)|does|has|works|teaches|lives|handles|"
        rf"delivers|brings|signs|"
        rf"reviews|approves|manages|leads|owns|goes to|takes over|comes)\s[^;:]{{2,160}})",
        _E,
        "description",
        check=_is_name,
    ),
)

RELATION = rule(
    rf"\b(?:my|our) (?:late |eldest |youngest |older |younger |little |big )?(?P<a>{RELATIONS}),?\s(?:is (?:called|"
    rf"named) )?(?P<s>{NAME})",
    _E, "relation", "{s} is {I}'s {a}", check=_is_name,
)  # fmt: skip
"""How a named person is related to the speaker. Applied beside any other rule."""

TASTE = rule(
    rf"^(?P<s>{NAME}) (?P<v>(?:can't stand|cannot stand|hates|loves|dislikes|doesn't like|does not like|likes|"
    rf"prefers|won't eat|"
    rf"doesn't eat|only eats|never eats|always (?:eats|takes|wants)|drinks only)\s[^,.;:]{{2,80}})",
    _P, check=_is_name,
)  # fmt: skip
"""What a related person likes. Applied only to relations named in the same session; about others it is hearsay."""
