"""What hangs on what: which sides of a life or a project may no longer fit where another one has changed. Pure.

A table of what usually goes together, short on purpose: what it leaves out is only not pointed at.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from afterword.facts.words import phrase_pattern, word_set


@dataclass(frozen=True, slots=True)
class AttributeGroup:
    """What hangs on what: `name` is what changes, `hanging` the words of what may no longer fit then.

    A fact changes it whose attribute consists of words of `attributes` and `QUALIFIERS` alone, or whose statement
    begins as `opening` says. Phrases of `aside` are left out before `hanging` is looked for. `is_shared`: the owner's
    household has it in common. `has_wishes`: it bears on preferences too, not only on circumstances and decisions.
    `is_dated`: what hangs on it must also tell of the same occasion.
    """

    name: str
    attributes: frozenset[str]
    hanging: re.Pattern[str]
    opening: re.Pattern[str] | None = None
    aside: re.Pattern[str] | None = None
    is_shared: bool = False
    has_wishes: bool = False
    is_dated: bool = False


QUALIFIERS = word_set(
    """new current main present primary own family name type model make brand title place start of the food internet
    web project"""
)
"""Words that an attribute may have besides those of its family."""

_HOME = word_set("home residence city town village country location address apartment flat house living lives")
_JOB = word_set("job employer company workplace work occupation profession position employment role")
_MOVED = re.compile(r"(?:the )?user (?:now |currently )*(?:lives|resides|is living) (?:in|at)\b", re.IGNORECASE)
_HIRED = re.compile(r"(?i:(?:the )?user (?:now |currently )*(?:works (?:at|for)|is employed (?:at|by))) [A-Z0-9]")
_DRIVES = re.compile(r"(?:the )?user (?:now |currently )*(?:drives|owns) an? ", re.IGNORECASE)
_DIETING = re.compile(r"(?:the )?user (?:is (?:now )?(?:vegan|vegetarian|pesc\w+)|is allergic to)\b", re.IGNORECASE)
_ROUTES = phrase_pattern(
    r"commut(?:e|es|ing)",
    r"way to (?:work|school|the office)|(?:gets?|getting) to (?:work|the office)",
    r"(?:cycl(?:es|ing)|walk(?:s|ing)?|driv(?:es|ing)|bik(?:es|ing)|tram|train|bus|metro|ferry) to (?:work|the office)",
    r"school run",
)
_PARKING = r"parking|parks (?:in|on|at|behind|under|the|her|his|their)"
_LINE = r"(?:phone|mobile|data|roaming|internet|broadband|sim|fibre)"

ATTRIBUTE_GROUPS = (
    AttributeGroup("home", _HOME, _ROUTES, opening=_MOVED, is_shared=True, has_wishes=True),
    AttributeGroup(
        "home",
        _HOME,
        phrase_pattern(
            r"(?:street |home |postal )?address|post ?code",
            r"gym|fitness (?:studio|club|centre|center)",
            r"doctor|gp|dentist|pa?ediatrician",
            r"neighbou?rs?",
            r"librar(?:y|ies)",
            _PARKING,
            r"rent|landlord|landlady|flatmates?|roommates?",
            r"(?:electricity|internet|broadband|gas|power|energy) (?:contract|tariff|provider|supplier|plan)",
            r"(?:local|corner|nearest|nearby) (?:\w+ )?(?:shop|store|supermarket|bakery|market|pharmacy)",
            r"kindergarten|nursery school|day ?care",
        ),
        opening=_MOVED,
        aside=phrase_pattern(
            r"(?:python|software|code|client|standard|http|ui) librar(?:y|ies)",
            r"(?:e-?mail|web|ip) address",
            r"national parks?",
            r"doctor (?:advised|told|says|said|forbade)",
            r"(?:for|to) rent",
        ),
        is_shared=True,
    ),
    AttributeGroup("job", _JOB, _ROUTES, opening=_HIRED, has_wishes=True),
    AttributeGroup(
        "job",
        _JOB,
        phrase_pattern(
            r"boss|manager|supervisor|team lead",
            r"colleagues?|co-?workers?",
            r"office",
            r"salary|wages?|pay ?slip|pay ?day",
            r"shifts?|working (?:hours|days|time)|work (?:hours|schedule)",
            r"work (?:phone|e?-?mail|laptop|number)|company (?:car|phone|laptop)",
        ),
        opening=_HIRED,
        aside=phrase_pattern(
            r"(?:home|post|ticket|tourist|tax|microsoft|ms|open) office",
            r"(?:password|file|window|package|bank|property|building) manager",
        ),
    ),
    AttributeGroup(
        "diet",
        word_set("diet allergy allergies intolerance intolerances dietary restriction restrictions nutrition"),
        phrase_pattern(r"recipes?|restaurants?|menus?|canteen", r"meal (?:plan|prep|box)\w*", r"lunch ?box(?:es)?"),
        opening=_DIETING,
        # How a recipe is written does not depend on what is eaten.
        aside=re.compile(r"(?i).*\b(?:metric|grams?|units?|minutes|portions?|servings|format|steps?|ounces|cups)\b.*"),
        is_shared=True,
        has_wishes=True,
    ),
    AttributeGroup(
        "car",
        word_set("car vehicle van"),
        phrase_pattern(
            r"insurance|insured",
            _PARKING,
            r"fuel|petrol|diesel|refuels?",
            r"charg(?:es|ing|er)|wall ?box",
            r"tyres?|tires",
        ),
        opening=_DRIVES,
        aside=phrase_pattern(
            r"(?:health|travel|life|home|household|liability|pet|legal|dental|disability) insurance",
            r"(?:phone|laptop|watch|camera) charg(?:er|es|ing)",
            r"(?:bike|bicycle) (?:tyres?|tires|insurance)",
            r"national parks?",
        ),
        is_shared=True,
    ),
    AttributeGroup(
        "date",
        word_set(
            """trip travel travels holiday vacation journey departure arrival date dates event wedding conference
            visit"""
        ),
        phrase_pattern(
            r"book(?:ed|ings?)|reserv(?:ed|ations?)",
            r"hotels?|flights?|tickets?|rental car|hostel|ferry",
            r"deadlines?|due|remind(?:s|ed|er|ers)?|check-?in|appointments?|rsvp",
        ),
        has_wishes=True,
        is_dated=True,
    ),
    AttributeGroup(
        "stack",
        word_set("database db programming language framework stack backend runtime"),
        phrase_pattern(
            r"drivers?|orm|schema",
            r"host(?:ed|ing)",
            r"backups?|backed up",
            r"migrations?",
            r"connection (?:pool|string)\w*",
            r"linter|test runner|package manager|build tool",
        ),
        aside=phrase_pattern(r"(?:printer|taxi|bus|truck|graphics) drivers?"),
    ),
    AttributeGroup(
        "school",
        word_set("school kindergarten nursery daycare university"),
        phrase_pattern(
            r"school run", r"(?:to|from) school", r"timetable", r"school (?:bus|lunch|starts)", r"class teacher"
        ),
        is_shared=True,
    ),
    AttributeGroup(
        "phone",
        word_set("phone mobile smartphone provider carrier operator"),
        phrase_pattern(rf"{_LINE} (?:plan|contract|tariff|package)s?", r"contract", r"tariff", r"sim(?: card)?"),
        aside=phrase_pattern(r"(?:rental|work|employment|lease|gym|electricity|gas|energy|insurance|labou?r) contract"),
    ),
)
