"""Split a turn into sentences and clauses, without quoted, pasted or forwarded text. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from afterword.extractors.rules.pasted_text import pasted_passages
from afterword.privacy.foreign.stretches import FILLER, ForeignStretch, without_foreign

HIDDEN = FILLER
"""Replaces each character of a hidden passage, so that positions in the text stay positions in the turn."""

LONGEST_SENTENCE = 400

_QUOTED = re.compile(
    r'"[^"\n]{1,400}"|“[^“”\n]{1,400}”|„[^„“”"\n]{1,400}[“”"]|«[^«»\n]{1,400}»|`{1,2}[^`\n]{1,400}`{1,2}'
)
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
class Passage:
    """A passage of a turn: its position and its words."""

    start: int
    end: int
    text: str

    def part(self, start: int, end: int) -> Passage:
        """Return the passage between two positions of this one, without white space around it."""
        words = self.text[start:end]
        stripped = words.strip()
        lead = len(words) - len(words.lstrip())
        return Passage(self.start + start + lead, self.start + start + lead + len(stripped), stripped)


def hide_passages(text: str, stretches: Sequence[ForeignStretch] = ()) -> str:
    """Return the text with everything hidden that the speaker did not say: foreign stretches, quotations, examples.

    A quotation of a single word stays. Apostrophes become straight; every character keeps its position.
    """
    hidden = _with_borders(without_foreign(text, stretches), text, stretches).replace("’", "'")
    forwarded = _FORWARDED.search(hidden)
    if forwarded:
        hidden = hidden[: forwarded.start()] + HIDDEN * (len(hidden) - forwarded.start())
    hidden = _hide_places(hidden, pasted_passages(hidden))
    return _QUOTED.sub(_hide_quotation, hidden)


def _with_borders(hidden: str, text: str, stretches: Sequence[ForeignStretch]) -> str:
    """Return the hidden text with a line break at the end of each stretch after which a new sentence begins."""
    signs = list(hidden)
    for stretch in stretches:
        is_sentence = text[stretch.start : stretch.end].rstrip("\"'”’“»")[-1:] in (".", "!", "?", ">", "]", "…")
        if is_sentence and text[stretch.end : stretch.end + 2].strip()[:1].isupper():
            signs[stretch.end - 1] = "\n"
    return "".join(signs)


def _hide_places(text: str, passages: Iterable[tuple[int, int]]) -> str:
    parts, last = [], 0
    for start, end in sorted(passages):
        if end > last:
            parts += [text[last : max(start, last)], HIDDEN * (end - max(start, last))]
            last = end
    return "".join([*parts, text[last:]])


def _hide_quotation(quotation: re.Match[str]) -> str:
    """Hide a quotation of two words or more; a single word in quotation marks is the speaker's own."""
    return HIDDEN * len(quotation.group()) if " " in quotation.group() else quotation.group()


def sentences(text: str) -> Iterator[Passage]:
    """Yield the sentences of a text. A smiley after the full stop belongs to the sentence before it."""
    whole = Passage(0, len(text), text)
    start = 0
    for border in _BORDER.finditer(text):
        if border.group().startswith(".") and _ABBREVIATION.search(
            text[max(start, border.start() - 12) : border.start()]
        ):
            continue
        yield from _readable(whole.part(start, border.end()))
        start = border.end()
    yield from _readable(whole.part(start, len(text)))


def _readable(sentence: Passage) -> Iterator[Passage]:
    if 0 < len(sentence.text) <= LONGEST_SENTENCE and any(sign.isalpha() for sign in sentence.text):
        yield sentence


def clauses(sentence: Passage) -> list[Passage]:
    """Return the clauses of a sentence, in order."""
    parts, start = [], 0
    for border in _CLAUSE_BORDER.finditer(sentence.text):
        if _NOT_BEFORE_AND.match(sentence.text, border.start()):
            continue
        parts.append(sentence.part(start, border.start()))
        start = border.end()
    parts.append(sentence.part(start, len(sentence.text)))
    return [clause for clause in parts if clause.text]
