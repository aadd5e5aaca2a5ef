"""Find a quote in the text of a turn, even if white space or typographic marks differ. Pure."""

from __future__ import annotations

from afterword.normal_form import composed, composed_characters
from afterword.privacy.normalisation import is_invisible

_TYPOGRAPHIC = str.maketrans("‘’‚‛′‹›“”„‟″«»‐‑‒–—―−", "'" * 7 + '"' * 7 + "-" * 7)


def find_quote(quote: str, text: str) -> str | None:
    """Return the words of `text` that match `quote`, exactly as they stand in `text`, or None.

    White space, invisible characters, the Unicode normal form and the typographic forms of quotation marks, apostrophes
    and dashes may differ. Letter case may not. A quote without a letter or digit matches nothing.
    """
    stripped, (wanted, _) = quote.strip(), _fold(quote)
    if not any(sign.isalnum() for sign in wanted):
        return None
    if stripped in text and composed(text) == text:
        return stripped
    plain, places = _fold(text)
    start = plain.find(wanted)
    if start < 0:
        return None
    return text[places[start][0] : places[start + len(wanted) - 1][1]]


def _fold(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Return the text folded for comparison, and the start and end in `text` of each folded character."""
    signs: list[str] = []
    places: list[tuple[int, int]] = []
    for sign, start, end in composed_characters(text.translate(_TYPOGRAPHIC)):
        if sign > "~" and is_invisible(sign):
            continue
        if sign.isspace():
            if not signs or signs[-1] == " ":
                continue
            sign = " "
        signs.append(sign)
        places.append((start, end))
    if signs and signs[-1] == " ":
        signs.pop()
    return "".join(signs), places
