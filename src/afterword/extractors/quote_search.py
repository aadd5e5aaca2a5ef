"""Find a quote in the text of a turn, even if white space or typographic marks differ. Pure."""

from __future__ import annotations

from afterword.normal_form import composed
from afterword.privacy.normalisation import is_invisible

_TYPOGRAPHIC = str.maketrans("‘’‚‛′‹›“”„‟″«»‐‑‒–—―−", "'" * 7 + '"' * 7 + "-" * 7)


def find_quote(quote: str, text: str) -> str | None:
    """Return the words of `text` that match `quote`, exactly as they stand in `text`, or None.

    The text is in NFC, as the text of every turn is. White space, invisible characters, the normal form of the quote
    and the typographic forms of quotation marks, apostrophes and dashes may differ. Letter case may not. A quote
    without a letter or digit matches nothing.
    """
    stripped = composed(quote).strip()
    wanted, _ = _fold(stripped)
    if not any(sign.isalnum() for sign in wanted):
        return None
    if stripped in text:
        return stripped
    plain, places = _fold(text)
    start = plain.find(wanted)
    if start < 0:
        return None
    return text[places[start] : places[start + len(wanted) - 1] + 1]


def _fold(text: str) -> tuple[str, list[int]]:
    """Return the text folded for comparison, and the place in `text` of each folded character."""
    signs: list[str] = []
    places: list[int] = []
    for place, sign in enumerate(text.translate(_TYPOGRAPHIC)):
        if sign > "~" and is_invisible(sign):
            continue
        if sign.isspace():
            if not signs or signs[-1] == " ":
                continue
            sign = " "
        signs.append(sign)
        places.append(place)
    if signs and signs[-1] == " ":
        signs.pop()
    return "".join(signs), places
