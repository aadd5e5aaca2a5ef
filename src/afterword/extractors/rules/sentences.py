"""Cut a turn into sentences and clauses; what is quoted, pasted or forwarded is left out. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from afterword.extractors.rules.foreign import foreign

HIDDEN = "\x00"
"""Stands for each character of a hidden passage, so that places in the masked text are places in the turn."""

LONGEST_SENTENCE = 400

_QUOTED = re.compile(
    r'"[^"\n]{1,400}"|“[^“”\n]{1,400}”|„[^„“”"\n]{1,400}[“”"]|«[^«»\n]{1,400}»|`{1,2}[^`\n]{1,400}`{1,2}'
)
_FENCED = re.compile(r"^[ \t]{0,3}(?:```|~~~)", re.MULTILINE)
_QUOTED_LINE = re.compile(r"^[ \t]{0,8}>[^\n]*", re.MULTILINE)
_FORWARDED = re.compile(
    r"^(?:-{2,20}[ \t]?)?(?:forwarded message|original message|begin forwarded message|from: [^\n]{0,200}$"
    r"|on [^\n]{4,80} wrote:)",
    re.MULTILINE | re.IGNORECASE,
)
_ABBREVIATION = re.compile(
    r"(?:\b(?:mr|mrs|ms|dr|prof|st|vs|approx|min|max|ca|e\.g|i\.e|a\.m|p\.m|etc|incl)|(?-i:\b[A-Z])|^\W{0,3}\d{1,2})$",
    re.IGNORECASE,
)
_JOKE_SIGN = r"(?:[:;]-?[)DPp]|[\U0001F300-\U0001FAFF☺☹✨❤️]|xD|haha\w{0,8}|lol\b)"
_BORDER = re.compile(
    rf"[.!?…]{{1,8}}[)\]\"”']?(?=\s|$)(?:[ \t]{{0,3}}{_JOKE_SIGN}){{0,5}}|\n[ \t]*(?=\n)|\n(?![ \t]?[a-zäöüß])"
)
_CLAUSE_BORDER = re.compile(
    r"[;()]|:\s|\s[-–—]{1,2}\s|\.{3}|…|,?\s(?=(?:but|because|since (?:he|she|it|they|we|I|last year)|although|"
    r"though|which|so|and)\s"
    r"(?!on\b|that\b|much\b|far\b))|,\s(?=(?:I|I'm|I've|I'll|I'd|we|we're|we've|he|she|it|it's|they|that's|there|"
    r"don't|so|life's)\b)",
    re.IGNORECASE,
)
_NOT_BEFORE_AND = re.compile(r",?\sand\s(?!(?:I|we|my|our|it|he|she|they|please|the|that|there|no)\b)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Span:
    """A passage of a turn: where it stands, and its words."""

    start: int
    end: int
    text: str

    def part(self, start: int, end: int) -> Span:
        """Return the passage between two places of this one, white space around it left out."""
        words = self.text[start:end]
        stripped = words.strip()
        lead = len(words) - len(words.lstrip())
        return Span(self.start + start + lead, self.start + start + lead + len(stripped), stripped)


def masked(text: str) -> str:
    """Return the text with code, quoted lines, others' mails, texts to work on and quotations of several words hidden.

    Apostrophes are straight in it; every character keeps its place.
    """
    hidden = _hide_fences(text.replace("’", "'"))
    forwarded = _FORWARDED.search(hidden)
    if forwarded:
        hidden = hidden[: forwarded.start()] + HIDDEN * (len(hidden) - forwarded.start())
    hidden = _hide_all(hidden, foreign(hidden))
    hidden = _QUOTED_LINE.sub(lambda found: HIDDEN * len(found.group()), hidden)
    return _QUOTED.sub(_hide_if_words, hidden)


def _hide_all(text: str, passages: Iterable[tuple[int, int]]) -> str:
    parts, last = [], 0
    for start, end in sorted(passages):
        if end > last:
            parts += [text[last : max(start, last)], HIDDEN * (end - max(start, last))]
            last = end
    return "".join([*parts, text[last:]])


def _hide_if_words(found: re.Match[str]) -> str:
    """Hide a quotation of two words or more; a single word in quotes is only a way to write it."""
    return HIDDEN * len(found.group()) if " " in found.group() else found.group()


def _hide_fences(text: str) -> str:
    marks = [found.start() for found in _FENCED.finditer(text)]
    if len(marks) % 2:
        marks.append(len(text))
    parts, last = [], 0
    for opened, closed in zip(marks[::2], marks[1::2], strict=True):
        line_end = text.find("\n", closed)
        end = len(text) if line_end < 0 else line_end
        parts += [text[last:opened], HIDDEN * (end - opened)]
        last = end
    return "".join([*parts, text[last:]])


def sentences(text: str) -> Iterator[Span]:
    """Yield the sentences of a masked text; a joke sign after the full stop belongs to the sentence before it."""
    whole = Span(0, len(text), text)
    start = 0
    for border in _BORDER.finditer(text):
        if border.group().startswith(".") and _ABBREVIATION.search(
            text[max(start, border.start() - 12) : border.start()]
        ):
            continue
        yield from _worth_reading(whole.part(start, border.end()))
        start = border.end()
    yield from _worth_reading(whole.part(start, len(text)))


def _worth_reading(sentence: Span) -> Iterator[Span]:
    if 0 < len(sentence.text) <= LONGEST_SENTENCE and any(sign.isalpha() for sign in sentence.text):
        yield sentence


def clauses(sentence: Span) -> list[Span]:
    """Return the clauses of a sentence, in order."""
    found, start = [], 0
    for border in _CLAUSE_BORDER.finditer(sentence.text):
        if _NOT_BEFORE_AND.match(sentence.text, border.start()):
            continue
        found.append(sentence.part(start, border.start()))
        start = border.end()
    found.append(sentence.part(start, len(sentence.text)))
    return [clause for clause in found if clause.text]
