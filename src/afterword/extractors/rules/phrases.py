"""Split a turn into sentences and clauses, and read the parts of a clause: lead, subject, names and things. Pure.

A lead is what stands before a clause without being part of it, such as "Hi, by the way". Sentences with quotations are
left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from afterword.extractors.rules import vocabulary
from afterword.facts.assertions import Cue
from afterword.facts.words import folded, phrase_pattern, word_set, words_as_written
from afterword.privacy.foreign.stretches import FILLER, ForeignStretch, fill_foreign_stretches
from afterword.privacy.normalisation import remove_invisible_characters

_LEAD = re.compile(
    r"(?i)(?:(?P<greeting>hi|hello|hey|good morning)(?: there)?(?:,? (?-i:[A-Z])\w+(?=[,!]))?|(?P<correction>actually|"
    r"correction|sorry|no|I meant(?: to say)?(?: that)?)|(?:thanks|thank you|yeah|yes|yep|yup)"
    rf"(?:,? (?-i:[A-Z])\w+(?=[,!]))?|{vocabulary.LEADS}|[-*•])(?:[\s,:!.]+(?=\S)|$)"
)
_TAIL = re.compile(rf"(?i),? (?:{vocabulary.TAILS})$")
_FRONTED = re.compile(rf"(?i)(?P<time>{vocabulary.FRONTED_TIME}),? (?P<clause>(?:(?:I|we)(?:'\w+)?|my|our) .+)")
_FROM_NOW_ON = re.compile(r"(?i)(?:from now on|going forward|as of now),? (?=(?:I|we)\b)")
_INVERTED = re.compile(
    rf"(?P<name>(?![Ii]t\b|[Tt]h|[Oo]ne\b)[\w' .&-]{{2,40}}?)(?: is|'s) (?P<role>(?:my|our|the) (?:new )?"
    rf"(?:{vocabulary.PERSONS}|{vocabulary.RELATIONS}|{vocabulary.JOBS}|(?:(?:all-time|absolute) )?fav(?:e|"
    rf"ou?rite) \w+))(?: of all time)?"
)
_SUBJECT = re.compile(
    rf"(?i)(?:I|we)\b|(?:my|our) (?:{vocabulary.RELATIONS}|{vocabulary.PETS})(?: (?-i:[A-Z])\w+)?\b|(?-i:[A-Z])\w+"
)
_NOW = re.compile(r"(?i)(?<!right )(?<!for )(?<!until )(?<!as of )(?:^|,? )now(?! on\b)(?=$| )")
_SELF = re.compile(
    r"(?i)(?:I|let's|(?P<group>we|the team))(?:'(?P<short>m|re|ve|ll|d)| (?P<verb>am|are|have)\b)? "
    r"(?:(?:currently|also|really|absolutely|strongly|much|still|definitely|just|recently|finally|actually|totally|"
    r"honestly|truly|simply|already) )*(?P<predicate>.+)"
)
_VERBS = {"m": "am", "re": "am", "are": "am", "ve": "have", "ll": "will", "d": "would"}
_RELATED = re.compile(
    rf"(?i)(?:my|our) (?:(?:older|younger|little|big|new|eldest|oldest|youngest) )?(?:(?P<age>\w+)[- ]year[- ]old )?"
    rf"(?P<relation>{vocabulary.RELATIONS}|{vocabulary.PETS}|{vocabulary.PERSONS})"
    r"(?:(?: is (?:called|named)|'s name is) (?P<called>.+)|,? (?P<others>.+))"
)
_NOT_CALLED = re.compile(r", (?:and )?not .+")
_NAMED = re.compile(r"(?P<name>[^\W\d_a-z][\w'-]{1,30}(?: [^\W\d_a-z][\w'-]{1,30})?),? (?P<others>.+)")
_OTHERS = re.compile(
    r"(is not|is|has|does not|(live|work|speak|eat|like|love|enjoy|hate|prefer|drink|play|drive|own|run|"
    r"handle|lead|teach(?=es)|wear|collect|smoke|start)e?s|moved|was born|grew up|got|had|started|joined|adopted|"
    r"graduated|bought|won|can't|cannot) (?P<others>.+)"
)
_SEVERAL = re.compile(
    rf"(?i)(?:my|our) (?P<relation>{vocabulary.SEVERAL_RELATIVES}) (?P<predicate>(?:are|live|work|have|speak|love|"
    rf"like|hate|moved|got) .+)"
)
_FIRST_PERSON = {"is": "am", "is not": "am not", "has": "have", "does not": "don't"}
_CONNECTING = word_set("de la le of the upon am der den del du da do dos y von zu")
_PLAIN_WORD = re.compile(r"[\w'&.+/#:€$£-]+(?:,\d+)*,?$")
_LONGEST_NAME, _LONGEST_THING = 6, 9
_BEFORE_VERB = word_set("always usually never only mostly rarely hardly ever normally typically often")
_IRREGULAR = {"am": "is", "have": "has", "don't": "does not", "can't": "cannot", "go": "goes"} | {
    verb: verb
    for verb in "will would cannot was grew got went won bought sold ran took built broke learnt had flew".split()
}
_LONGEST_SENTENCE = 300
_PLAYED = re.compile(r"(?i)\b(?:pretend|role-?play|imagine|let's say|I'll play|in (?:my|your) (?:role|story))\b")
_ABBREVIATION = re.compile(r"(?:\b(?i:mr|mrs|ms|dr|prof|st|vs|ca|e\.g|i\.e|etc)|\b[A-Z]|^\W{0,3}\d{1,2})$")
_BORDER = re.compile(
    r"[.!?…]{1,8}[)\]\"”']?(?=\s|$)(?:[ \t]{0,3}(?:[:;]-?[)DPp]|[\U0001F300-\U0001FAFF]|haha\w{0,8}|lol\b)){0,5}"
    r"|\n[ \t]*(?=\n)|\n(?![ \t]?[a-zäöüß])"
)
_SPEAKER = r"(?:(?:I|we)(?:'\w+)?|my|our|please|that's)\b"
_OTHER_SUBJECT = r"(?:he|she|they|it|there|this|that)(?:'\w+)?\b"
_CLAUSE_BORDER = re.compile(
    rf"(?i);|\s[-–—]{{1,2}}\s|,?\s(?=(?:and|but|so) (?:(?:please|now|then|also) )?(?:forget|{_SPEAKER}))|"
    rf",\s(?={_SPEAKER})|,?\s(?=(?:and|so(?! you know)|since|as(?! you know)) (?:{_SPEAKER}|{_OTHER_SUBJECT}|the ))|"
    rf",?\s(?=(?:'cause|because|although|though|but|which) )|(?<!wrong),\s(?=(?:so|as|where|who|{_OTHER_SUBJECT}) )|"
    r",\s(?=and [\w']+ (?:\w+ )?(?:is|are|was|were|has|have|can|makes?) )|"
    rf"(?<!,)\s(?=and (?:(?:also|now|always|never|usually|don't|can't) )?{vocabulary.SHARED_VERB} )"
)
_CHANGES_MEANING, _NARROWS = phrase_pattern(vocabulary.CHANGES_MEANING), phrase_pattern(vocabulary.NARROWS)
_ONE_OF_TWO = re.compile(r"(?i)\s*(?:[\w ]{1,12}, )?my \w+(?: \w+)?")
_TIME = re.compile(rf"(?i)\s*(?:(?:yeah|oh|and|so|well|hey),? )?{vocabulary.FRONTED_TIME}")
_FIRST_UNREAD = re.compile(
    r"(?i)(?:(?:yeah|yes|thanks|hey)[,!]? )?(?:(?:I|we)(?:'\w+)?|my|our|it(?:'s)?|that's|there's|a lot(?:'s| has)|"
    r"so much has|lots) (?!like\b)"
)


def own_words(text: str, stretches: Sequence[ForeignStretch]) -> str:
    """Return the speaker's own words in a turn, up to where the speaker plays a role.

    Fillers take the place of `stretches` (pasted text). Apostrophes are straight, and invisible characters left out.
    """
    signs = list(fill_foreign_stretches(text, stretches).replace("’", "'"))
    for stretch in stretches:  # if pasted text ends a sentence, a new one begins after it
        if text[stretch.start : stretch.end].rstrip("\"'”’“»").endswith((".", "!", "?", ">", "]", "…")):
            signs[stretch.end - 1] = "\n"
    return _PLAYED.split(remove_invisible_characters("".join(signs)), maxsplit=1)[0]


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text. A smiley after a full stop belongs to the sentence before the stop."""
    start = 0
    for border in _BORDER.finditer(text):
        if border.group() != "." or not _ABBREVIATION.search(text[max(start, border.start() - 12) : border.start()]):
            yield text[start : border.end()].strip()
            start = border.end()
    yield text[start:].strip()


def is_negligible_clause(unread: str, *, is_first: bool) -> bool:
    """Return whether a clause that the grammar cannot read may be ignored without changing what the sentence says."""
    if _CHANGES_MEANING.search(unread) or (is_first and not _FIRST_UNREAD.match(unread)):
        return False
    return not re.match(r"(?i)(?:but|though|although|as)\b", unread) or not _NARROWS.search(unread)


def clauses(sentence: str) -> list[str]:
    """Return the clauses of a sentence, or none if it contains pasted text or is too long."""
    if FILLER in sentence or len(sentence) > _LONGEST_SENTENCE:
        return []
    parts, start = [], 0
    for border in _CLAUSE_BORDER.finditer(sentence):
        is_pair = sentence.startswith("and I ", border.end()) and _ONE_OF_TWO.fullmatch(sentence, start, border.start())
        if not is_pair and not _TIME.fullmatch(sentence, start, border.start()):
            parts.append(sentence[start : border.start()].strip())
            start = border.end()
    return [*parts, sentence[start:].strip()]


class Clause(NamedTuple):
    """The predicate of a clause in the first person, its subject, and the cue of its lead ("actually": a correction).

    `who` is the subject if it is not the speaker, and `relation` what that person or animal is to the speaker, who is
    written `{who}`. `age` is the 7 of "my 7-year-old son". `is_joint` is true for "we", and `is_several` for "my
    parents". Without a known subject (`has_subject`), the predicate is the whole clause.
    """

    predicate: str
    cue: Cue | None = None
    is_greeted: bool = False
    has_subject: bool = False
    is_joint: bool = False
    who: str | None = None
    relation: str | None = None
    age: str | None = None
    is_several: bool = False


def clause_without_lead(text: str, cue: Cue | None = None, *, is_greeted: bool = False) -> Clause:
    """Return a clause without leads ("Hi, by the way, ...") and without punctuation at its end."""
    text = " ".join(text.split())
    for _ in range(4):
        if lead := _LEAD.match(text):
            cue = Cue.CORRECTION if lead["correction"] else cue
            is_greeted = is_greeted or bool(lead["greeting"])
            text = text[lead.end() :]
    return Clause(text.rstrip(" ,.!…"), cue, is_greeted)


def without_tails(text: str) -> str:
    """Return a clause without additions at its end: politeness, a time in the past, a reason."""
    for _ in range(3):
        text = _TAIL.sub("", text).rstrip(" ,.")
    return text


def separate_subject(clause: Clause) -> Clause:
    """Return a clause whose subject and the word "now" are separated from its predicate."""
    whole = without_tails(clause.predicate)
    plain = _NOW.sub("", whole, count=1).strip()
    is_changed = whole != plain or bool(_FROM_NOW_ON.match(whole))
    text = without_tails(_with_subject_first(plain))
    clause = clause._replace(predicate=text, cue=clause.cue or (Cue.CHANGE if is_changed else None))
    if " you to " not in text and (own := _SELF.fullmatch(text)):
        verb = (own["short"] or own["verb"] or "").lower()
        verb = "let" if text.lower().startswith("let") else _VERBS.get(verb, verb)
        predicate = re.sub(r"^(?:have got |got (?=an? ))", "have ", f"{verb} {own['predicate']}".strip())
        return clause._replace(predicate=predicate, has_subject=True, is_joint=bool(own["group"]))
    if several := _SEVERAL.fullmatch(text):
        who, predicate = f"{{who}}'s {several['relation'].lower()}", re.sub(r"^are\b", "am", several["predicate"])
        return clause._replace(predicate=predicate, has_subject=True, who=who, is_several=True)
    return _separate_other_subject(clause)


def subject_of(clause: str) -> str:
    """Return the words of the subject with which a clause begins, empty if there is none."""
    subject = _SUBJECT.match(clause_without_lead(clause).predicate)
    return subject.group() if subject else ""


def _with_subject_first(text: str) -> str:
    """Return a clause with its subject first. A time moves to the end, and "Ana is my boss" is turned round."""
    text = re.sub(r"\bgonna\b", "going to", _FROM_NOW_ON.sub("", text))
    text = re.sub(r"^[Mm]y \w+(?: \w+)? and I\b", "we", text)
    if fronted := _FRONTED.fullmatch(text):
        # A word with a capital letter could be part of a name; "Mondays" keeps it.
        time = re.sub(r"^(?!\w+days\b)\w", lambda first: first[0].lower(), fronted["time"])
        text = f"{fronted['clause']} {time}"
    inverted = _INVERTED.fullmatch(text)
    return f"{inverted['role']} is {inverted['name']}" if inverted else text


def _separate_other_subject(clause: Clause) -> Clause:
    """Return a clause about somebody else with its subject separated, or the clause unchanged."""
    related = _RELATED.fullmatch(clause.predicate)
    if not related:
        return _separate_name(clause, clause.predicate) or clause
    relation, age, text = related["relation"].lower(), related["age"], related["others"] or ""
    is_kin = not re.fullmatch(vocabulary.PERSONS, related["relation"], re.IGNORECASE)
    if called := _called_name(related, is_kin=is_kin):
        return clause._replace(predicate="", has_subject=True, who=called, relation=relation, age=age)
    # "My wife is called ..." says nothing else, even if the name cannot be read: then the text is empty.
    if named := _separate_name(clause, text):
        return named._replace(relation=relation, age=age)
    predicate = _in_first_person(text) if is_kin else None
    return clause._replace(predicate=predicate, has_subject=True, who=f"{{who}}'s {relation}") if predicate else clause


def _separate_name(clause: Clause, text: str) -> Clause | None:
    """Return the clause with the name and the predicate of a text that begins with the name of a person, or None."""
    named = _NAMED.fullmatch(text)
    predicate = _in_first_person(named["others"]) if named and is_person_name(named["name"]) else None
    return clause._replace(predicate=predicate, has_subject=True, who=named["name"]) if named and predicate else None


def _called_name(related: re.Match[str], *, is_kin: bool) -> str | None:
    """Return the name in "my wife is called Runa", "my wife is Runa" or "my wife is Runa, not Rosa", or None."""
    name = related["called"] or (related["others"] if is_kin and related["others"].startswith("is ") else "")
    name = _NOT_CALLED.sub("", name.removeprefix("is "))
    return name if is_person_name(name) else None


def _in_first_person(predicate: str) -> str | None:
    """Return a predicate in the first person for one in the third, or None if the grammar does not know its verb."""
    plain = re.sub(r"^(?:just|recently|also|really|still|currently|absolutely) ", "", predicate)
    verb = _OTHERS.fullmatch(re.sub(r"^(is|does)n't ", r"\1 not ", plain))
    return f"{_FIRST_PERSON.get(verb[1]) or verb[2] or verb[1]} {verb['others']}" if verb else None


def in_third_person(predicate: str) -> str:
    """Return a predicate in the third person for one in the first: "don't live" becomes "does not live"."""
    words = re.sub(r"\b(?:my|our)\b", "their", re.sub(r"^do not\b", "don't", predicate)).split(" ")
    place = next((index for index, word in enumerate(words) if word not in _BEFORE_VERB), 0)
    verb = words[place]
    if verb.endswith("ed") and verb != "need":
        return " ".join(words)
    ending = "es" if verb.endswith(("s", "x", "ch", "sh", "z", "o")) else "s"
    words[place] = _IRREGULAR.get(verb) or (verb[:-1] + "ies" if re.search(r"[^aeiou]y$", verb) else verb + ending)
    return " ".join(words)


def is_person_name(name: str) -> bool:
    """Return whether the words may be a person's name: capitalised, and no greeting, weekday, month or language."""
    words = name.split()
    are_capitalised = all(word[0].isalpha() and not word[0].islower() for word in words)
    return 0 < len(words) <= 3 and are_capitalised and vocabulary.NO_NAME.isdisjoint(words_as_written(name.casefold()))


def is_proper_name(name: str) -> bool:
    """Return whether the words may name a place or a firm: capitalised words and numbers, linked by words like "of"."""
    words = name.split()
    if not 0 < len(words) <= _LONGEST_NAME or words[0][0].islower() or words[-1] in _CONNECTING:
        return False
    return all(_PLAIN_WORD.match(word) and (not word[0].islower() or word in _CONNECTING) for word in words)


def is_thing(phrase: str) -> bool:
    """Return whether a phrase names a thing: a few plain words, and none like "it" that refers to something else."""
    words = folded(phrase.replace(",", "").replace("May", "month")).split()
    if not 0 < len(words) <= _LONGEST_THING or not all(_PLAIN_WORD.match(word) for word in phrase.split()):
        return False
    is_of_the_talk = not {"the", "a", "an"}.isdisjoint(words) and not vocabulary.OF_THE_TALK.isdisjoint(words)
    return vocabulary.POINTING.isdisjoint(words) and not is_of_the_talk


def is_kind_of_thing(phrase: str) -> bool:
    """Return whether a phrase names a kind of thing, and not a certain thing such as "the office"."""
    return is_thing(phrase) and folded(phrase).split()[0] not in ("the", "another", "to", "of")


def is_event(phrase: str) -> bool:
    """Return whether a phrase names an event that is worth remembering."""
    words = folded(phrase).split()
    is_rounded = vocabulary.NO_EVENT_EDGES.isdisjoint({*words[:1], *words[-1:]})
    return is_rounded and is_thing(phrase) and vocabulary.NO_EVENT.isdisjoint(words)


def is_allergen(phrase: str) -> bool:
    """Return whether somebody may be allergic to it: nobody is allergic to Mondays."""
    words = [vocabulary.singular(word) for word in words_as_written(phrase.casefold())]
    is_named = 0 < len(words) <= 4 and is_kind_of_thing(phrase)
    return is_named and vocabulary.NO_ALLERGEN.isdisjoint(words) and not words[-1].endswith(("ity", "ness", "ism"))


def list_parts(phrase: str) -> list[str]:
    """Return the parts of a list: "milk, eggs and soy" is three."""
    return [part.strip() for part in re.split(r", and |, | and ", phrase) if part.strip()]
