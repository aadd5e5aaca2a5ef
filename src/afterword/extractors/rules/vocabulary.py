"""The words that the rules know, and the attributes that they set. Pure.

Fixed attributes: name, home, job, employer, business, role, language, diet, allergy, condition, relation, description,
stay, seat, editor, shell, operating_system, schedule, closed, shift, source, price, platform, goal, plan, choice,
language_of_letters, budget and budget_per_night/day/week/month/year. What is named by the speaker's words takes their
head noun ("Deadline is ..." is `deadline`), a limit `max_<unit>`, an amount `<unit>_per_<period>`.
"""

from __future__ import annotations

import re

from afterword.facts.words import plain_words, word_set

PERSONAL = word_set(
    "name home employer job role birthday age contact source relation address version platform phone_number"
)
"""Attributes that only their own rules may set. As the head noun of a wish they mean something else."""

LANGUAGES = (
    "English|German|French|Spanish|Italian|Portuguese|Dutch|Polish|Russian|Ukrainian|Arabic|Turkish|Greek|"
    "Swedish|Norwegian|"
    "Danish|Finnish|Icelandic|Czech|Slovak|Slovene|Slovenian|Croatian|Serbian|Hungarian|Romanian|Bulgarian|"
    "Hebrew|Hindi|Urdu|"
    "Bengali|Tamil|Mandarin|Cantonese|Chinese|Japanese|Korean|Vietnamese|Thai|Swahili|Irish|Welsh|Catalan|Basque|"
    "Persian|Farsi|"
    "Yoruba|Igbo|Hausa|Amharic|Zulu|Afrikaans|Malay|Indonesian|Tagalog|Latin|Esperanto|Flemish|Galician|Estonian|"
    "Latvian|Lithuanian"
)
RELATIONS = (
    "wife|husband|partner|girlfriend|boyfriend|fianc[ée]e?|spouse|mother|father|mum|mom|dad|sister|brother|son|"
    "daughter|"
    "child|kid|baby|twin|niece|nephew|aunt|uncle|cousin|grandmother|grandfather|grandma|grandpa|granddaughter|grandson|"
    "stepson|stepdaughter|mother-in-law|father-in-law|sister-in-law|brother-in-law|son-in-law|daughter-in-law|"
    "dog|cat|horse|boss|manager|assistant|accountant|landlord|flatmate|roommate"
)
DIETS = (
    "vegan|vegetarian|pescatarian|pescetarian|gluten[- ]free|lactose[- ]free|dairy[- ]free|halal|kosher|keto|"
    "paleo|low[- ]carb|"
    "plant[- ]based|teetotal"
)
CONDITIONS = (
    r"co?eliac(?: disease)?|diabetes|type [12] diabetes|asthma|epilepsy|migraines?|arthritis|hay fever|high blood "
    r"pressure|"
    r"lactose intolerance|gluten intolerance|ADHD|dyslexia|tinnitus|a hearing aid|a pacemaker|a (?:\w+ ){0,2}allergy"
)
JOBS = (
    "engineer|developer|programmer|teacher|nurse|doctor|designer|manager|director|lawyer|solicitor|accountant|"
    "driver|student|"
    "professor|lecturer|researcher|scientist|writer|editor|consultant|analyst|architect|chef|cook|baker|"
    "carpenter|plumber|"
    "electrician|photographer|journalist|librarian|pharmacist|therapist|physiotherapist|dentist|vet|farmer|pilot|"
    "musician|artist|"
    "translator|interpreter|midwife|social worker|paramedic|firefighter|police officer|secretary|receptionist|mechanic|"
    "technician|administrator|founder|freelancer|biologist|chemist|physicist|psychologist|economist|historian|gardener|"
    "hairdresser|surgeon|civil servant|product owner|data scientist|sysadmin|welder|bookkeeper|beekeeper"
)
NUMBERS = (
    "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|sixty|ninety"
)

_SLOTS = (
    (re.compile(r"\b(?:window|aisle|middle) seat|\bseats?\b|\baisle\b", re.IGNORECASE), "seat"),
    (
        re.compile(
            r"\b(?:neo)?vim\b|\bemacs\b|\bvs ?code\b|\bhelix\b|\beditor\b|\bpycharm\b|\bintellij\b", re.IGNORECASE
        ),
        "editor",
    ),
    (re.compile(r"\b(?:zsh|bash|powershell|fish shell|nushell|shell)\b", re.IGNORECASE), "shell"),
    (
        re.compile(r"\b(?:ubuntu|debian|fedora|macos|windows 1[01]|arch linux|linux)\b", re.IGNORECASE),
        "operating_system",
    ),
    (re.compile(rf"\b(?:{DIETS})\b", re.IGNORECASE), "diet"),
)
_BREAK = re.compile(
    r"\s(?:that|which|who|when|whenever|where|with|without|for|from|in|on|at|of|to|and|or|but|because|since|as|by|"
    r"before|after|over|"
    r"than|between|via|per|if|until|till|up|down|through|about|around|not|no|so|is|are|rather|instead|anymore|any "
    r"more|now|like)\b|[,.:;!()]",
    re.IGNORECASE,
)
_SKIPPED = word_set(
    """a an the my our your his her their some any this that these those really very most more all always never
    please own new old only both also take takes go goes make give to do be have get using being doing having
    going it them me us no either"""
)


def singular(word: str) -> str:
    """Return an English noun without its plural ending."""
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3 else word


_VAGUE = word_set("number name date size address code type time list title day format")
_UNITS = {
    "kilo": "kg",
    "kilogram": "kg",
    "kilometre": "km",
    "kilometer": "km",
    "metre": "m",
    "gram": "g",
    "euro": "eur",
}


def slug(phrase: str, fallback: str = "note") -> str:
    """Return the head noun of a phrase as an attribute: "quiet rooms with a view" is `room`."""
    head = _BREAK.split(phrase.strip(), maxsplit=1)[0] or phrase
    words = [word for word in plain_words(head.casefold()) if word not in _SKIPPED]
    if not words:
        return fallback
    noun = singular(words[-1])[:40]
    return _UNITS.get(noun, noun)


def label_slug(label: str) -> str:
    """Return the head noun of a label, with the word before it if the noun alone says little."""
    name = slug(label)
    words = plain_words(_BREAK.split(label.strip(), maxsplit=1)[0].casefold())
    return f"{words[-2]}_{name}" if name in _VAGUE and len(words) > 1 and words[-2] not in _SKIPPED else name


def slot(phrase: str, fallback: str = "note") -> str:
    """Return the attribute of a phrase: a known attribute if it names one, else its head noun."""
    for pattern, name in _SLOTS:
        if pattern.search(phrase):
            return name
    return slug(phrase, fallback)
