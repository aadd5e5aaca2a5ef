"""Split a turn into sentences and clauses. Sentences that quote are left out. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

QUOTATION = "\x00"
_LONGEST_SENTENCE = 300
_PASSED_ON = re.compile(
    r"(?im)^[ \t]*(?:```|~~~|-{2,}[ \t]?\w|(?:from|subject): |on [^\n]{4,80} wrote:|dear [a-z][^\n]{1,40},[ \t]*$)|"
    r":[ \t]*$|\b(?:translate|proof-?read|summari[sz]e|rewrite|rephrase|shorten|polish|correct|wrote|writes|said|says|"
    r"replied|mail|letter|message|text|article|example)\b[^\n:.!?]{0,80}(?::|\n|\b(?:following|below)\b)|"
    r"\b(?:pretend|role-?play|imagine|let's say|I'll play|in (?:the|my|your) (?:role|character|story))\b"
)
_QUOTED = re.compile(r"(?m)\"[^\"\n]{1,400}\"|“[^“”\n]{1,400}”|«[^«»\n]{1,400}»|^[ \t]*>[^\n]*")
_ABBREVIATION = re.compile(r"(?:\b(?i:mr|mrs|ms|dr|prof|st|vs|ca|e\.g|i\.e|etc)|\b[A-Z]|^\W{0,3}\d{1,2})$")
_BORDER = re.compile(
    r"[.!?…]{1,8}[)\]\"”']?(?=\s|$)(?:[ \t]{0,3}(?:[:;]-?[)DPp]|[\U0001F300-\U0001FAFF]|haha\w{0,8}|lol\b)){0,5}"
    r"|\n[ \t]*(?=\n)|\n(?![ \t]?[a-zäöüß])"
)
_SPEAKER = r"(?:(?:I|we)(?:'\w+)?|my|our|please|that's)\b"
_CLAUSE_BORDER = re.compile(
    rf"(?i);|\s[-–—]{{1,2}}\s|,?\s(?=(?:and|but|so) (?:please )?(?:forget|{_SPEAKER}))|,\s(?={_SPEAKER})"
)


def own_words(text: str) -> str:
    """Return a turn without what it passes on or plays, with straight apostrophes and a mark for each quotation."""
    passed_on = _PASSED_ON.search(text)
    own = text[: passed_on.start() if passed_on else len(text)].replace("’", "'")
    return _QUOTED.sub(lambda quoted: QUOTATION if " " in quoted[0] else quoted[0], own)


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
    is_plain = QUOTATION not in sentence and len(sentence) <= _LONGEST_SENTENCE
    return [clause.strip() for clause in _CLAUSE_BORDER.split(sentence)] if is_plain else []
