"""Find long passages in another style than the person's own writing. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from afterword.privacy.foreign.lines import ForeignKind, ForeignStretch, Line
from afterword.text_caches import text_cache

_FEWEST_WORDS = 60
_FEWEST_OWN_WORDS = 5
_TIMES_LONGER = 4
_FEWEST_DIFFERENCES = 3
_LONGEST_READ = 4_000
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_SENTENCE_END = re.compile(r"[.!?…]+(?=\s|$)|\n")
_TYPOGRAPHIC = re.compile("[“”„‘’—–…«»]")
_INFORMAL = re.compile(
    r"\b(?:i|im|ive|dont|cant|u|gonna|wanna|lol|ok|btw|pls|thx)\b|[!?]{2,}|[:;]-?[)D(P]|['’](?:m|re|ll|ve|d|s|t)\b"
)


@dataclass(frozen=True, slots=True)
class Style:
    """The style of a text: number of words, mean length of words and sentences, typographic signs, informal words."""

    words: int
    word_letters: float
    sentence_words: float
    is_typographic: bool
    is_informal: bool


@dataclass(frozen=True, slots=True)
class WritingHabit:
    """How a person writes: the style of their earlier turns, and the median number of words in a turn."""

    style: Style
    turn_words: int


@text_cache(16)
def writing_habit_of(texts: tuple[str, ...]) -> WritingHabit | None:
    """Return how the person who wrote these texts writes, or None if the texts are too short to tell."""
    lengths = sorted(len(_WORD.findall(text[:_LONGEST_READ])) for text in texts)
    style = _style(" \n".join(texts)[:_LONGEST_READ])
    return WritingHabit(style, lengths[len(lengths) // 2]) if style.words >= _FEWEST_OWN_WORDS else None


def find_style_changes(text: str, lines: Sequence[Line], habit: WritingHabit | None) -> Iterator[ForeignStretch]:
    """Yield the long paragraphs of a text whose style differs from the usual style of its author.

    `habit` is that style. If it is None, the paragraphs are compared with the short paragraphs of the same text.
    """
    if len(text) < _FEWEST_WORDS * 3:
        return
    paragraphs = [
        (start, end, _style(text[start : min(end, start + _LONGEST_READ)])) for start, end in _paragraphs(lines)
    ]
    long = [paragraph for paragraph in paragraphs if paragraph[2].words >= _FEWEST_WORDS]
    if habit is None and long:
        habit = writing_habit_of(
            tuple(text[start:end] for start, end, style in paragraphs if style.words < _FEWEST_WORDS)
        )
    if habit is None:
        return
    for start, end, style in long:
        if _differs_from_habit(style, habit):
            yield ForeignStretch(start, end, ForeignKind.REGISTER)


def _paragraphs(lines: Sequence[Line]) -> Iterator[tuple[int, int]]:
    for is_blank, group in groupby(lines, key=lambda line: line.is_blank):
        if not is_blank:
            paragraph = list(group)
            yield paragraph[0].start, paragraph[-1].end


def _style(text: str) -> Style:
    words = _WORD.findall(text)
    count = max(1, len(words))
    return Style(
        words=len(words),
        word_letters=sum(map(len, words)) / count,
        sentence_words=count / max(1, len(_SENTENCE_END.findall(text))),
        is_typographic=_TYPOGRAPHIC.search(text) is not None,
        is_informal=_INFORMAL.search(text) is not None,
    )


def _differs_from_habit(passage: Style, habit: WritingHabit) -> bool:
    own = habit.style
    if passage.words < _TIMES_LONGER * habit.turn_words:
        return False
    differences = (
        passage.word_letters >= own.word_letters + 0.5,
        passage.sentence_words >= max(15.0, 1.5 * own.sentence_words),
        passage.is_typographic and not own.is_typographic,
        own.is_informal and not passage.is_informal,
    )
    return sum(differences) >= _FEWEST_DIFFERENCES
