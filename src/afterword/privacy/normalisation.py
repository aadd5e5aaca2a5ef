"""Plain forms of a text for comparison, and the removal of invisible characters. Pure.

The same word can be written in many ways: with invisible characters inside, look-alike letters of other alphabets,
full-width letters, non-breaking blanks or Markdown emphasis. The checks of this package search the plain form, and mask
the matching part of the original text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from afterword.normal_form import composed

Span = tuple[int, int]

_LOOKALIKES = {
    # Cyrillic
    **dict(
        zip(
            "аеорсухіјѕһԁԛԝѵӏкмтгпьзАВЕКМНОРСТУХІЈЅԌԚԜЅҮҺӀЗЬ",
            "aeopcyxijshdqwvlkmtrnb3ABEKMHOPCTYXIJSGQWSYhI3b",
            strict=True,
        )
    ),
    # Greek
    **dict(
        zip("αβεγηικνορςστυχωϲϳΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹ", "abeyniKvopsotuxwcjABEZHIKMNOPTYXC".replace("K", "k", 1), strict=True)
    ),
    # Armenian, Cherokee, and Latin letters that are not decomposed by NFKC
    **dict(zip("օոսցհԱՏՕᎠᎡᎢᎪᎬᎳᎷᎻᏀᏃᏒᏚᏞᏟᏢᏴ", "onughUSODRTAEWMHGZRSLCPB", strict=True)),
    **dict(zip("ıɩɑɡɪʟɴʀʏʙɢʜᴀᴄᴅᴇᴊᴋᴍᴏᴘᴛᴜᴠᴡᴢꜰꜱƽøłđħŧ", "iiagilnrybghacdejkmoptuvwzfs5oldht", strict=True)),
    # Punctuation that is typed for an ASCII character
    **dict.fromkeys("\u2010\u2011\u2012\u2212\ufe63", "-"),
    **dict.fromkeys("’‘‛ʼ′´", "'"),
    **dict.fromkeys("∶꞉：", ":"),
    **dict.fromkeys("\u2800\u3164\uffa0\u115f\u1160", " "),
}

_FOREIGN_LETTERS = frozenset(character for character in _LOOKALIKES if "\u0370" <= character <= "\u13ff")
_WORD = re.compile(r"[^\W\d_]{2,}")
_LATIN = re.compile("[A-Za-z]")

_VISIBLE_FORMAT = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd")
"""Unicode format characters that are visible: number signs of Arabic and other scripts."""

_JOINERS = frozenset("\u200c\u200d")
_IGNORED = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0")
_MARKS = re.compile(r"[*_~`]{1,3}")
_LONGEST_EMPHASIS = 300
_PLAIN = re.compile(r"[\t\n\r -~]*+")


@dataclass(frozen=True, slots=True)
class PlainText:
    """The plain form of a text. `text[i]` stands for the characters `starts[i]` to `ends[i]` of the original."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]

    def original_span(self, start: int, end: int) -> Span:
        """Return the span of the original text that matches a span of the plain form, which must not be empty."""
        return self.starts[start], self.ends[end - 1]


def plain_forms(text: str) -> Iterator[PlainText]:
    """Yield the plain form of a text without Markdown emphasis and, if it has any, one with quotation marks instead.

    Emphasis may surround a word that a pattern looks for, or it may mark a value as literal.
    """
    plain = plain_form_with_emphasis(text)
    pairs = list(_emphasis_marks(plain.text))
    if not pairs:
        yield plain
        return
    marks = {place for opening, closing in pairs for place in (*range(*opening), *range(*closing))}
    yield _change_characters(plain, marks, {})
    quotes = {place: '"' for opening, closing in pairs for place in (opening[0], closing[1] - 1)}
    yield _change_characters(plain, marks - quotes.keys(), quotes)


def plain_form(text: str) -> PlainText:
    """Return the plain form of a text without Markdown emphasis."""
    return next(plain_forms(text))


def searchable_text(text: str) -> str:
    """Return the text with look-alike letters replaced, no invisible characters or emphasis, and single spaces."""
    return re.sub(r"[^\S\n]+", " ", plain_form(text).text)


def undisguised_text(text: str) -> str:
    """Return the text in NFC, without invisible characters and without look-alike letters inside Latin words.

    Words in other alphabets are not changed.
    """
    if text.isascii():
        return remove_invisible_characters(text)
    return _WORD.sub(_as_latin, composed(remove_invisible_characters(text)))


def _as_latin(match: re.Match[str]) -> str:
    word = match.group()
    is_mixed = _LATIN.search(word) is not None and any(character in _FOREIGN_LETTERS for character in word)
    return "".join(_LOOKALIKES.get(character, character) for character in word) if is_mixed else word


def remove_invisible_characters(text: str) -> str:
    """Return the text without invisible characters.

    These are zero-width and control characters, variation selectors, bidirectional marks, soft hyphens and tags.
    Joiners stay between letters of scripts that are written with them, and inside emoji.
    """
    if _PLAIN.fullmatch(text):
        return text
    return "".join(
        character
        for index, character in enumerate(text)
        if not is_invisible(character) or (character in _JOINERS and _is_needed_joiner(text, index))
    )


def storable_text(text: str) -> str:
    """Return the text without what a database or UTF-8 cannot store: control characters and lone surrogates."""
    return remove_invisible_characters(text).encode("utf-8", "replace").decode()


def is_invisible(character: str) -> bool:
    """Return whether a character is invisible: zero-width, control, variation selector, bidirectional mark, tag."""
    if character in "\n\r\t":
        return False
    category = unicodedata.category(character)
    if category in ("Cf", "Cc"):
        return character not in _VISIBLE_FORMAT
    return character in _IGNORED or "\ufe00" <= character <= "\ufe0f" or "\U000e0000" <= character <= "\U000e0fff"


def _is_needed_joiner(text: str, index: int) -> bool:
    """Return whether a joiner changes how the characters beside it are drawn."""
    before = next((text[place] for place in range(index - 1, max(index - 3, -1), -1) if text[place] != "\ufe0f"), "")
    after = text[index + 1 : index + 2]
    if not before or not after:
        return False
    is_script = "\u0600" <= before <= "\u109f" and "\u0600" <= after <= "\u109f"
    is_emoji = text[index] == "\u200d" and all(
        unicodedata.category(neighbour) in ("So", "Sk") for neighbour in (before, after)
    )
    return is_script or is_emoji


@cache
def _plain_character(character: str) -> str:
    if is_invisible(character) and character not in _LOOKALIKES:
        return ""
    folded = unicodedata.normalize("NFKC", character)
    return "".join(_ascii_lookalike(part) for part in folded if unicodedata.category(part) != "Mn")


def _ascii_lookalike(character: str) -> str:
    """Return the ASCII character that a character looks like or means, or the character itself if there is none."""
    if character in _LOOKALIKES:
        return _LOOKALIKES[character]
    if character.isdecimal():
        return str(unicodedata.decimal(character))
    return " " if unicodedata.category(character) == "Zs" else character


def plain_form_with_emphasis(text: str) -> PlainText:
    """Return the plain form of a text, with its Markdown emphasis left in."""
    if _PLAIN.fullmatch(text):
        return PlainText(text, range(len(text)), range(1, len(text) + 1))
    characters: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    base = ""
    for index, character in enumerate(text):
        plain = _plain_character(character)
        if not plain and base and unicodedata.combining(character):
            # A decomposed letter: "e" and an accent are the letter "é".
            if letter := _single_letter(base + character):
                base, characters[-1] = letter, _plain_character(letter)
            ends[-1] = index + 1
            continue
        characters.extend(plain)
        starts.extend([index] * len(plain))
        ends.extend([index + 1] * len(plain))
        base = character if len(plain) == 1 else base if not plain else ""
    return PlainText("".join(characters), starts, ends)


def _single_letter(letter_and_accent: str) -> str | None:
    """Return a decomposed letter as one character, or None if Unicode has none that is plain as one character, too."""
    letter = unicodedata.normalize("NFC", letter_and_accent)
    return letter if len(letter) == 1 and len(_plain_character(letter)) == 1 else None


def _emphasis_marks(text: str) -> Iterator[tuple[Span, Span]]:
    """Yield the opening and closing marks of Markdown emphasis and code within a line."""
    opened: dict[str, Span] = {}
    for match in _MARKS.finditer(text):
        start, end = match.span()
        mark, before, after = match.group(), text[start - 1 : start], text[end : end + 1]
        opening = opened.get(mark)
        is_closing = bool(before.strip()) and not _is_word_character(after)
        if opening and is_closing and start - opening[1] <= _LONGEST_EMPHASIS and "\n" not in text[opening[1] : start]:
            yield opened.pop(mark), (start, end)
        elif after.strip() and not _is_word_character(before):
            opened[mark] = start, end


def _is_word_character(character: str) -> bool:
    """Return whether a mark beside this character is inside a word, and no emphasis."""
    return character.isalnum() or character == "_"


def _change_characters(plain: PlainText, dropped: set[int], replaced: dict[int, str]) -> PlainText:
    """Return the plain text without the characters at the positions `dropped`, and with those in `replaced` changed."""
    places = [place for place in range(len(plain.text)) if place not in dropped]
    text = "".join([replaced[place] if place in replaced else plain.text[place] for place in places])
    return PlainText(text, [plain.starts[place] for place in places], [plain.ends[place] for place in places])
