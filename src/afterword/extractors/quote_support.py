"""Decide whether the quoted sentences of a conversation support what a candidate states. Pure.

A quote that stands in a turn is not enough, since the quote "I" stands in almost every turn. The words of the value
must stand in the quoted sentences. It may be worded differently: a third of its content words is enough, compared by
stems, or three quarters of the whole statement. A person who answers "no" to an agent denies what the agent said. Names
and numbers that nobody said are never supported, and a date must be said or computed from words of time.

Words of a person that only repeat what an agent or a memory block said about the person support nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto

from afterword.extractors.said_words import (
    SaidWords,
    count_content_words,
    plain_text,
    said_share,
    unsaid_names_and_numbers,
)
from afterword.facts.assertions import Evidence
from afterword.facts.transcripts import Role, Turn
from afterword.facts.words import folded, phrase_pattern
from afterword.normal_form import composed

FEWEST_SAID = 1 / 3
"""The least share of a value's content words that must be said, unless nearly the whole statement was said."""

_FEWEST_TO_COMPLETE = 0.6
"""If a person said this share, names and numbers may come from the agent's sentence that the person answers."""

_FEWEST_OF_SENTENCE = 0.25
"""The share of a statement's content words that must be said if its value has none, as in "none"."""

_FEWEST_OF_STATEMENT, _SHORTEST_STATEMENT, _SHORTEST_DETAIL = 0.75, 4, 3
"""If a value is worded differently ("monthly" for "by the month"), this share of its statement must be said instead.

The other two are the fewest content words of such a statement, and of an outcome or a limit that must be said as well.
"""

_ACCEPTED = phrase_pattern(
    r"yes|yeah|yep|yup|ok|okay|sure|fine|perfect|great|good|lovely|wise|exactly|correct|right|agreed|absolutely|deal",
    r"of course|go ahead|sounds good|do it|do that|do so|please do|i'm in|count me in|confirmed|that's it|that one",
    r"(?:i|we|i'll|we'll|let's) (?:will )?(?:take|go with|do|book|use) (?:that|it|this|them|those)|why not|indeed|true",
    r"ja|jawohl|genau|gern|gerne|passt|stimmt|richtig|einverstanden|in ordnung|gut|perfekt|klar|alles klar|natürlich",
    r"sí|si|claro|vale|de acuerdo|exacto|correcto|perfecto|bueno|oui|d'accord|exactement|parfait|bien sûr|entendu",
    r"sì|va bene|certo|esatto|esattamente|perfetto|giusto|sim|está bem|certo|exato|perfeito|isso|combinado",
    r"goed|prima|precies|klopt|akkoord|natuurlijk",
)
_NEGATIVE = (
    r"no|not|never|nope|nah|none|neither|nor|without|cannot|\w+n't|nein|nee|nö|nix|nichts|nicht|kein\w*|nie|niemals|ohne",
    r"nunca|jamás|tampoco|ning[uú]n\w*|nada|sin|non|pas|rien|aucun\w*|jamais|sans|mai|niente|nessun\w*|senza|não|nem",
    r"nenhum\w*|sem|niet|niets|geen|nooit|zonder",
)
_DOUBTFUL = (
    r"doubt|unsure|maybe|perhaps|might|would|could|if|unless|unlikely|hardly|sarcastic|joking|kidding|as if",
    r"yeah,? right|vielleicht|bezweifle|quizás?|peut-être|forse|talvez|misschien",
)
_NEGATED, _DOUBTED = phrase_pattern(*_NEGATIVE), phrase_pattern(*_DOUBTFUL)
_BEGINS_WITH_NO = re.compile(rf"[\W\d_]*(?:{'|'.join(_NEGATIVE)})\b", re.IGNORECASE)
_REFUSED = phrase_pattern(
    *_NEGATIVE,
    *_DOUBTFUL,
    r"stop|wait|hold on|hang on|whatever|change the (?:topic|subject)|(?:another|next) topic|pigs|hell|dream on|stopp|"
    r"warte|egal|espera|attends|arrête|peu importe|aspetta|fermati|pare|wacht|laat maar",
    r"wrong|false|incorrect|untrue|nonsense|instead|falsch|mentira|faux|falso",
)
_ENDS_WITH_DENIAL = re.compile(
    r"(?:\b(?:not|never|no (?:longer|evidence|proof|sign)|cannot|do(?:es)?nt|(?<!no )doubt|false|nicht|nie|niemals|"
    r"kein\w*|pas|jamais|plus|niet|nooit|geen|não|nunca)|n't)"
    r"(?: (?:currently|really|actually|ever|even|mehr|meer|longer))?"
    r"(?: (?:think|believe|say|said|true|claim))?(?:,? (?:that|dass|que|che|dat))?\s*\Z",
    re.IGNORECASE,
)
_REMINDS = re.compile(r"\b(?:vergiss|vergesst|oublie\w*|vergeet)\b", re.IGNORECASE)
"""Words with which a denial denies nothing: "vergiss nicht, dass ich in Oslo wohne"."""
_ENDS_WITH_NO = re.compile(r"\b(?:no|non)\s*\Z", re.IGNORECASE)
"""Denies what follows in Spanish and Italian, and a noun in English. Else it is an answer: "no I live in Oslo"."""
_BEGINS_WITH_SUBJECT = re.compile(
    r"(?:i|we|it|he|she|they|you|my|our|the|this|that|these|yo|io|mi|la|el|il|lo)\b", re.IGNORECASE
)
_TELLS_OF_DENIAL = phrase_pattern(
    *_NEGATIVE,
    r"stop\w*|quit\w*|avoid\w*|refus\w*|dislike\w*|hate\w*|against|unable|except\w*|allerg\w*|intoleran\w*|\w+-free",
    r"nothing|nobody|vermeide\w*|gegen|außer|unverträglich\w*|evita\w*|évite\w*|sauf|excepto|tranne|exceto|behalve|vermijdt",
)
_TAKEN_BACK = phrase_pattern(
    r"forget|delete|erase|remove|wipe|drop|discard|withdraw|leave (?:it|that) out|take (?:it|that) back|scratch",
    r"vergiss|lösch\w*|weglassen|streich\w*|olvida\w*|borra\w*|oublie\w*|efface\w*|dimentica\w*|cancella\w*|esquec\w*",
    r"apaga\w*|vergeet|verwijder\w*|no idea where|outdated|over|gone|stopped|quit",
)
_TURNS_BEFORE = 40
_FEWEST_WORDS = 3
_OF_BLOCK = re.compile(
    r"\bthe user(?:['’]s [\w ]{1,30}?)? (?:is|are|was|has|had|have|lives?|likes?|loves?|prefers?|works?|wants?|needs?|"
    r"never|always|does|do|can|will|takes?|uses?|owns?|plans?)\b"
)
_SPEAKER = re.compile(
    r"\b(?:i|me|my|mine|we|our|us|ich|mir|mich|mein\w*|wir|uns\w*|j|je|moi|mon|ma|mes|nous|notre|nos|yo|mi|mis|nosotros|nuestr\w*|"
    r"io|mio|mia|miei|noi|nostr\w*|eu|meu|minha|nós|noss\w*|ik|mij|mijn|wij|ons|onze)\b"
)
_ASSISTANT = re.compile(
    r"\b(?:you|your|yours|du|dir|dich|dein\w*|ihnen|ihr\w*|tu|tes|vous|votre|vos|tú|usted|sus|lei|tuo|tua|suo|sua|"
    r"você|teu|tua|seu|jij|jouw|uw)\b"
)


def accepts(sentence: str) -> bool:
    """Return whether a sentence agrees with what was said before it, without a question, a denial or a doubt."""
    plain = plain_text(sentence)
    return "?" not in plain and bool(_ACCEPTED.search(plain)) and not _REFUSED.search(plain)


def says_no(sentence: str) -> bool:
    """Return whether a sentence begins with a word such as "no" or "never", and has no question or doubt."""
    plain = plain_text(sentence)
    return "?" not in plain and bool(_BEGINS_WITH_NO.match(plain)) and not _DOUBTED.search(plain)


def takes_back(sentence: str) -> bool:
    """Return whether a sentence denies or withdraws what was said before it, or agrees to withdraw it."""
    plain = plain_text(sentence)
    return bool(_TAKEN_BACK.search(plain) or _REFUSED.search(plain) or accepts(sentence))


def has_word_of_denial(sentence: str) -> bool:
    """Return whether a sentence contains a word of denial."""
    return _NEGATED.search(sentence) is not None


def has_doubt_or_condition(sentence: str) -> bool:
    """Return whether a sentence contains a word of doubt or a condition."""
    return _DOUBTED.search(sentence) is not None


def tells_of_denial_or_dislike(statement: str) -> bool:
    """Return whether a statement denies something itself, or tells of a dislike or an allergy."""
    return _TELLS_OF_DENIAL.search(plain_text(statement)) is not None


def speaks_of_speaker(sentence: str) -> bool:
    """Return whether a sentence contains a word of the first person."""
    return _SPEAKER.search(folded(sentence)) is not None


def is_cut_from_denial(before: str, quote: str, statement: str) -> bool:
    """Return whether the words just before a quote deny it, while the statement contains no denial.

    "live in Oslo", quoted from "I don't live in Oslo", says the opposite. `before` are the words before the quote in
    its sentence. A denial farther away is ignored, because it may deny something else.
    """
    before, quote = plain_text(before[-100:]), plain_text(quote)
    has_no = quote[:1].islower() and not _BEGINS_WITH_SUBJECT.match(quote) and _ENDS_WITH_NO.search(before)
    is_denied = has_no or (_ENDS_WITH_DENIAL.search(before) and not _REMINDS.search(before))
    return bool(is_denied) and not _TELLS_OF_DENIAL.search(plain_text(statement))


class Support(Enum):
    """Whether quoted words support a candidate: fully, not at all, or only if a person accepts an agent's words."""

    FULL = auto()
    UNSAID = auto()
    NOT_ACCEPTED = auto()


@dataclass(frozen=True, slots=True)
class QuotedWords:
    """The words that a candidate cites, and the conversation around them.

    `person_sentences` and `agent_sentences` are the quoted sentences of people and of agents, and `person_turns` the
    words of people around these sentences. `answered_turns` are the words of an agent just before a person's turn.
    `last_sentence` is the last quoted sentence of a person. `acceptance` is the quoted sentence in which a person
    accepts the agent's words, or empty if the candidate names no such turn. `people_words` are the words of people in
    the conversation, `everybody_words` those of all speakers. `quotes` holds for each quote the words before it in its
    sentence, the quote, and the words after it.
    """

    person_sentences: SaidWords
    person_turns: SaidWords
    agent_sentences: SaidWords
    answered_turns: SaidWords
    last_sentence: str
    acceptance: str
    people_words: SaidWords
    everybody_words: SaidWords
    quotes: tuple[tuple[str, str, str], ...] = ()

    @property
    def is_accepted(self) -> bool:
        """Whether a person accepts the agent's quoted words in the sentence that the candidate names for it."""
        return bool(self.agent_sentences.text) and bool(self.acceptance) and accepts(self.acceptance)


def stands_in_own_words(value: str, own_text: str, pasted_text: str) -> bool:
    """Return whether all quoted words of a value stand in a person's own words, and not only in pasted ones."""
    own_words, pasted_words, value_words = (
        {word.casefold() for word in re.findall(r"\w+", composed(text))} for text in (own_text, pasted_text, value)
    )
    cited = value_words & (pasted_words | own_words)
    return bool(cited) and cited <= own_words


def quote_cut_from_denial(statement: str, quotes: Iterable[tuple[str, str, str]]) -> str | None:
    """Return the first quote that is cut out of a denial, or None.

    An entry of `quotes` is the words before the quote in its sentence, the quote, and the words after it.
    """
    return next((quote for before, quote, _ in quotes if is_cut_from_denial(before, quote, statement)), None)


def statement_support(value: str, statement: str, details: str, quoted: QuotedWords) -> Support:
    """Return whether quoted words support a value, its statement, and `details` (its limit and outcome, one a line)."""
    if not count_content_words(value):  # as in "none"
        return _support_without_content_words(value, f"{statement}\n{details}", quoted)
    if not (_is_said_by_person(value, statement, quoted) or _answers_no_to_agent(value, statement, quoted)):
        if said_share(value, SaidWords(f"{quoted.person_sentences.text}\n{quoted.agent_sentences.text}")) < FEWEST_SAID:
            return Support.UNSAID
        if not quoted.is_accepted:
            return Support.NOT_ACCEPTED
    is_complete = _are_details_said(details, quoted.everybody_words)
    return (
        Support.FULL
        if is_complete and not unsupported_names_and_numbers(value, statement, details, quoted)
        else Support.UNSAID
    )


def _is_said_by_person(value: str, statement: str, quoted: QuotedWords) -> bool:
    """Return whether a person said the value, or nearly the whole statement, in which it may be worded differently."""
    if said_share(value, quoted.person_sentences, quoted.person_turns) >= FEWEST_SAID:
        return True
    return (
        count_content_words(statement) >= _SHORTEST_STATEMENT
        and said_share(statement, quoted.person_sentences, quoted.person_turns) >= _FEWEST_OF_STATEMENT
    )


def _are_details_said(details: str, everybody: SaidWords) -> bool:
    """Return whether somebody spoke of the outcome and the limit. Very short ones may sum up what was said."""
    return all(
        count_content_words(text) < _SHORTEST_DETAIL or said_share(text, everybody) >= FEWEST_SAID
        for text in details.splitlines()
    )


def _support_without_content_words(value: str, sentences: str, quoted: QuotedWords) -> Support:
    """Return whether quoted words support a value without content words ("none"), judged by its statement."""
    person, turns = quoted.person_sentences, quoted.person_turns
    is_said = person.contains_text(value) or said_share(sentences, turns) >= _FEWEST_OF_SENTENCE
    is_complete = is_said and not unsaid_names_and_numbers(sentences, quoted.everybody_words)
    return Support.FULL if is_complete else Support.UNSAID


def unsupported_names_and_numbers(value: str, statement: str, details: str, quoted: QuotedWords) -> list[str]:
    """Return the names and numbers of a candidate that are not supported by what was said."""
    person, everybody = quoted.person_sentences, quoted.everybody_words
    may_answer = bool(quoted.acceptance) or "?" in quoted.agent_sentences.text
    share = said_share(value, person, quoted.person_turns) if count_content_words(value) else 1.0
    may_complete = quoted.is_accepted or (may_answer and share >= _FEWEST_TO_COMPLETE)
    own = quoted.people_words
    if may_complete or _answers_no_to_agent(value, statement, quoted):
        own = SaidWords(f"{own.text}\n{quoted.agent_sentences.text}\n{quoted.answered_turns.text}")
    of_value = [] if person.contains_text(value) else unsaid_names_and_numbers(value, own, everybody)
    return list(dict.fromkeys([*of_value, *unsaid_names_and_numbers(f"{statement}\n{details}", everybody)]))


def _answers_no_to_agent(value: str, statement: str, quoted: QuotedWords) -> bool:
    """Return whether a person answers "no" to an agent, and the statement denies what the agent said."""
    if not (says_no(quoted.last_sentence) and _NEGATED.search(plain_text(f"{value}\n{statement}"))):
        return False
    heard = SaidWords(f"{quoted.person_sentences.text}\n{quoted.agent_sentences.text}\n{quoted.answered_turns.text}")
    return said_share(value, heard) >= FEWEST_SAID


def withdrawal_support(value: str, statement: str, quoted: QuotedWords) -> Support:
    """Return whether quoted words support that something is withdrawn or is to be erased.

    The person must name it, or answer an agent who has just named it.
    """
    named, least = (value, FEWEST_SAID) if count_content_words(value) else (statement, _FEWEST_OF_SENTENCE)
    if said_share(named, quoted.person_turns) >= least:
        return Support.FULL
    answered = SaidWords(f"{quoted.person_turns.text}\n{quoted.agent_sentences.text}\n{quoted.answered_turns.text}")
    if said_share(named, answered) < least:
        return Support.UNSAID
    return Support.FULL if takes_back(quoted.last_sentence) else Support.NOT_ACCEPTED


def first_repeated_quote(evidence: Iterable[Evidence], turns: Mapping[int, Turn]) -> str | None:
    """Return the first quote of a person that only repeats what an agent or a memory said, or None."""
    quotes = ((cited.quote, turns[cited.turn or 0]) for cited in evidence)
    return next((quote for quote, turn in quotes if turn.role is Role.HUMAN and _is_repeated(quote, turn, turns)), None)


def _is_repeated(quote: str, turn: Turn, turns: Mapping[int, Turn]) -> bool:
    """Return whether words of a person are only copied from a memory or an agent.

    Words that call the owner "the user" come from a memory. Words with "you" and without "I" come from an agent or a
    memory if one of their turns just before contains them.
    """
    words = folded(quote)
    if _OF_BLOCK.search(words):
        return True
    if len(words.split()) < _FEWEST_WORDS or _SPEAKER.search(words) or not _ASSISTANT.search(words):
        return False
    before = (turns.get(number) for number in range(turn.number - 1, turn.number - _TURNS_BEFORE, -1))
    others = (other for other in before if other is not None and other.role in (Role.AGENT, Role.MEMORY))
    return any(words.strip(".!? ") in folded(other.text) for other in others)
