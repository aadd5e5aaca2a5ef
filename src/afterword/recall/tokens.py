"""How long a text is for a model, without any download."""

import re
from functools import lru_cache

BYTES_PER_TOKEN = 3
LETTERS_PER_TOKEN = 4

_SPACES = re.compile("  +| $", re.MULTILINE)
_PIECES = re.compile(r"[a-z]+|[\x00-\x7f]|[^\x00-\x7f]+")


def utf8_size(text: str) -> int:
    """Return the UTF-8 bytes of a text; a lone surrogate counts three."""
    return len(text.encode("utf-8", "surrogatepass"))


def estimated_tokens(text: str) -> int:
    """Return an estimate of the tokens of a text: a third of its UTF-8 bytes, rounded up.

    That is on the high side for English (about four bytes a token) and near the truth for most other languages.
    """
    return -(-utf8_size(text) // BYTES_PER_TOKEN)


@lru_cache(maxsize=20_000)
def token_upper_bound(text: str) -> int:
    """Return how many tokens a text has at most for today's tokenizers, which all work on bytes.

    A run of small letters counts one for each four, other ASCII one a character, a space before a word nothing, and
    everything else one a byte. English comes out a fifth to a third too high; a single rare word may be too low, a
    text of many words is not.
    """
    return bool(text) + sum(map(_most, _PIECES.findall(text))) - text.count(" ") + len(_SPACES.findall(text))


def _most(piece: str) -> int:
    if not piece.isascii():
        return utf8_size(piece)
    return -(-len(piece) // LETTERS_PER_TOKEN)
