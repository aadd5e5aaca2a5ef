"""How many tokens a text has for a model, estimated without a tokenizer. Pure."""

import re
from functools import lru_cache

BYTES_PER_TOKEN = 3
LETTERS_PER_TOKEN = 4

_SPACES = re.compile("  +| $", re.MULTILINE)
_PIECES = re.compile(r"[a-z]+|[\x00-\x7f]|[^\x00-\x7f]+")


def utf8_size(text: str) -> int:
    """Return the number of UTF-8 bytes of a text; a lone surrogate counts three."""
    return len(text.encode("utf-8", "surrogatepass"))


def estimated_tokens(text: str) -> int:
    """Return an estimate of the tokens of a text: a third of its UTF-8 bytes, rounded up.

    That is too high for English (about four bytes a token) and near the truth for most other languages.
    """
    return -(-utf8_size(text) // BYTES_PER_TOKEN)


@lru_cache(maxsize=20_000)
def token_upper_bound(text: str) -> int:
    """Return the most tokens that a text has for today's tokenizers, which all work on bytes.

    A run of small letters counts one for each four of them, any other ASCII character one, a space before a word
    nothing, and everything else one for each byte. For English that is a fifth to a third too high. It may be too low
    for a single rare word, but not for a text of many words.
    """
    return bool(text) + sum(map(_piece_tokens, _PIECES.findall(text))) - text.count(" ") + len(_SPACES.findall(text))


def _piece_tokens(piece: str) -> int:
    return -(-len(piece) // LETTERS_PER_TOKEN) if piece.isascii() else utf8_size(piece)
