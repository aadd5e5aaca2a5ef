"""The words that the offline rules know, and the attribute that a phrase belongs to. Pure.

The word lists are in `words.toml`.
"""

from __future__ import annotations

import re
import tomllib
from importlib import resources

from afterword.facts.words import word_set, words_as_written

_LISTS: dict[str, str] = tomllib.loads(resources.files(__package__).joinpath("words.toml").read_text(encoding="utf-8"))


def _alternatives(name: str) -> str:
    return _LISTS[name].replace("\n", "")


LANGUAGES, RELATIONS, SEVERAL_RELATIVES = map(_alternatives, ("languages", "relations", "several_relatives"))
PETS, PERSONS, OWNED, BUSINESSES, DIETS, CONDITIONS, STATES, ACTIVITIES, NO_SORT_OF_PERSON = map(
    _alternatives, "pets persons owned businesses diets conditions states activities no_sort_of_person".split()
)
INSTRUCTION, HABITS, LONG_DONE, HAPPENED = map(_alternatives, ("instruction", "habits", "long_done", "happened"))
LEADS, TAILS, CHANGES_MEANING, NARROWS = map(_alternatives, ("leads", "tails", "changes_meaning", "narrows"))
LIKE, DISLIKE, SHARED_VERB, FREQUENCY, MONTHS = (
    f"(?:{_alternatives(name)})" for name in ("like", "dislike", "shared_verbs", "frequency", "months")
)
OFTEN_DONE = f"{HABITS}|{_alternatives('often_done')}"
JOBS = f"(?:(?:{_alternatives('job_kinds')}) ){{0,2}}(?:{_alternatives('jobs')})"
NUMBERS = r"(?:\d{1,3}|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|sixty)"
FRONTED_TIME = (
    rf"(?:yesterday|(?:this|last|next) \w+|(?:a|two|three|a few|\d+) \w+ ago|the other day|{FREQUENCY}|(?:on|in|from|"
    rf"since|until|as of|starting) (?:\d|next |{MONTHS}|(?:mon|tues|wednes|thurs|fri|satur|sun)day)[\w ]{{0,20}})"
)
GERUNDS = {
    form: verb
    for verb in (*INSTRUCTION.split("|"), *OFTEN_DONE.split("|"), "like")
    for form in (f"{verb}ing", f"{verb[:-1]}ing", f"{verb}{verb[-1]}ing")
} | {"being": "am"}
COUNTRIES, POINTING, OF_THE_TALK, VAGUE_VERBS, NO_ALLERGEN, NO_ACTIVITY, NO_EVENT, NO_EVENT_EDGES = (
    word_set(_LISTS[name])
    for name in "countries pointing of_the_talk vague_verbs no_allergen no_activity no_event no_event_edges".split()
)
NO_NAME = word_set(_LISTS["no_name"]) | frozenset(LANGUAGES.lower().split("|"))

_BREAK = re.compile(
    r"(?i)\s(?:with|without|for|from|in|on|at|of|to|and|or|as|by|before|after|over|than|every|under|instead)\b|"
    r"[,.:;!()]"
)
_SKIPPED = word_set("a an the my our your some any this very more all always never dont not please new own against")


def known_attribute(phrase: str) -> str | None:
    """Return the attribute of a known thing, or None: `seat` for "aisle seats", `editor` for "Vim"."""
    slots = ("seat", "editor", "shell", "preferred_drink")
    return next((slot for slot in slots if re.fullmatch(_alternatives(slot), phrase, re.IGNORECASE)), None)


def attribute_of_phrase(phrase: str) -> str:
    """Return the head noun of a phrase as an attribute: `room` for "quiet rooms with a view"."""
    head = _BREAK.split(phrase.strip(), maxsplit=1)[0] or phrase
    words = [word for word in words_as_written(head.casefold().replace("'", "")) if word not in _SKIPPED]
    return singular(words[-1])[:40] if words else "note"


def singular(word: str) -> str:
    """Return an English noun without its plural ending."""
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) and len(word) > 3 else word
