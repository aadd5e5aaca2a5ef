"""Groups of attributes, each with words of facts that may be outdated when such an attribute changes. Pure.

The table is short on purpose. If a dependency is missing, the fact is only not listed for review.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from afterword.facts.words import phrase_pattern, word_set


@dataclass(frozen=True, slots=True)
class AttributeGroup:
    """Attributes that change together, called `name`, and the words of the facts that depend on them.

    A fact belongs to the group if its attribute consists of words of `attributes` and `QUALIFIERS` alone, or if its
    statement begins with `opening`. A fact depends on the group if it contains `dependent_words`, apart from the
    phrases that `excluded` matches. `is_household`: the people and belongings of the owner's household share it.
    `affects_preferences`: preferences depend on it too, not only other facts. `is_occasion`: dependent facts must
    mention the same occasion.
    """

    name: str
    attributes: frozenset[str]
    dependent_words: re.Pattern[str]
    opening: re.Pattern[str] | None = None
    excluded: re.Pattern[str] | None = None
    is_household: bool = False
    affects_preferences: bool = False
    is_occasion: bool = False


QUALIFIERS = word_set(
    """new current main present primary own family name type model make brand title place start of the food internet
    web project"""
)
"""Words that an attribute may have besides those of its group."""

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
    AttributeGroup("home", _HOME, _ROUTES, opening=_MOVED, is_household=True, affects_preferences=True),
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
        excluded=phrase_pattern(
            r"(?:python|software|code|client|standard|http|ui) librar(?:y|ies)",
            r"(?:e-?mail|web|ip) address",
            r"national parks?",
            r"doctor (?:advised|told|says|said|forbade)",
            r"(?:for|to) rent",
        ),
        is_household=True,
    ),
    AttributeGroup("job", _JOB, _ROUTES, opening=_HIRED, affects_preferences=True),
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
        excluded=phrase_pattern(
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
        # Anchored: tried at every position of a long word it would take the square of its length.
        excluded=re.compile(
            r"(?im)^.*\b(?:metric|grams?|units?|minutes|portions?|servings|format|steps?|ounces|cups)\b.*"
        ),
        is_household=True,
        affects_preferences=True,
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
        excluded=phrase_pattern(
            r"(?:health|travel|life|home|household|liability|pet|legal|dental|disability) insurance",
            r"(?:phone|laptop|watch|camera) charg(?:er|es|ing)",
            r"(?:bike|bicycle) (?:tyres?|tires|insurance)",
            r"national parks?",
        ),
        is_household=True,
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
        affects_preferences=True,
        is_occasion=True,
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
        excluded=phrase_pattern(r"(?:printer|taxi|bus|truck|graphics) drivers?"),
    ),
    AttributeGroup(
        "school",
        word_set("school kindergarten nursery daycare university"),
        phrase_pattern(
            r"school run", r"(?:to|from) school", r"timetable", r"school (?:bus|lunch|starts)", r"class teacher"
        ),
        is_household=True,
    ),
    AttributeGroup(
        "phone",
        word_set("phone mobile smartphone provider carrier operator"),
        phrase_pattern(rf"{_LINE} (?:plan|contract|tariff|package)s?", r"contract", r"tariff", r"sim(?: card)?"),
        excluded=phrase_pattern(
            r"(?:rental|work|employment|lease|gym|electricity|gas|energy|insurance|labou?r) contract"
        ),
    ),
)
