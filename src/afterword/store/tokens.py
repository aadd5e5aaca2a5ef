"""How long a text is for a model, without any download."""

BYTES_PER_TOKEN = 3


def size(text: str) -> int:
    """Return the UTF-8 bytes of a text; a lone surrogate counts three."""
    return len(text.encode("utf-8", "surrogatepass"))


def tokens(text: str) -> int:
    """Return an estimate of the tokens of a text: a third of its UTF-8 bytes, rounded up.

    That is on the high side for English (about four bytes a token) and near the truth for most other languages.
    """
    return -(-size(text) // BYTES_PER_TOKEN)
