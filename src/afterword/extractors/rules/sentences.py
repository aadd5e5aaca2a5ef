"""Split a turn into sentences and clauses. Sentences that quote are left out. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from afterword.privacy.foreign.stretches import FILLER, ForeignStretch, without_foreign
from afterword.privacy.normalisation import remove_invisible

_LONGEST_SENTENCE = 300
_PLAYED = re.compile(r"(?i)\b(?:pretend|role-?play|imagine|let's say|I'll play|in (?:my|your) (?:role|story))\b")
_ABBREVIATION = re.compile(r"(?:\b(?i:mr|mrs|ms|dr|prof|st|vs|ca|e\.g|i\.e|etc)|\b[A-Z]|^\W{0,3}\d{1,2})$")
_BORDER = re.compile(
    r"[.!?…]{1,8}[)\]\"”']?(?=\s|$)(?:[ \t]{0,3}(?:[:;]-?[)DPp]|[\U0001F300-\U0001FAFF]|haha\w{0,8}|lol\b)){0,5}"
    r"|\n[ \t]*(?=\n)|\n(?![ \t]?[a-zäöüß])"
)
_SPEAKER = r"(?:(?:I|we)(?:'\w+)?|my|our|please|that's)\b"
_CLAUSE_BORDER = re.compile(
    rf"(?i);|\s[-–—]{{1,2}}\s|,?\s(?=(?:and|but|so) (?:please )?(?:forget|{_SPEAKER}))|,\s(?={_SPEAKER})"
)


def own_words(text: str, stretches: Sequence[ForeignStretch]) -> str:
    """Return a turn up to where it plays a role, with straight apostrophes and a mark for each foreign stretch.

    Invisible characters are left out.
    """
    signs = list(without_foreign(text, stretches).replace("’", "'"))
    for stretch in stretches:  # where one ends a sentence, a new one begins behind it
        if text[stretch.start : stretch.end].rstrip("\"'”’“»").endswith((".", "!", "?", ">", "]", "…")):
            signs[stretch.end - 1] = "\n"
    return _PLAYED.split(remove_invisible("".join(signs)), maxsplit=1)[0]


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text. A smiley after the full stop belongs to the sentence before it."""
    start = 0
    for border in _BORDER.finditer(text):
        if border.group() != "." or not _ABBREVIATION.search(text[max(start, border.start() - 12) : border.start()]):
            yield text[start : border.end()].strip()
            start = border.end()
    yield text[start:].strip()


def clauses(sentence: str) -> list[str]:
    """Return the clauses of a sentence; none of one that quotes or is too long to be plain."""
    is_plain = FILLER not in sentence and len(sentence) <= _LONGEST_SENTENCE
    return [clause.strip() for clause in _CLAUSE_BORDER.split(sentence)] if is_plain else []
