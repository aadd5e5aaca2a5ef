"""Turn a saved conversation into assertions that quote it, and judge how assertions relate to each other.

The readers make a transcript, which is cut into windows. An extractor (offline rules or a language model) proposes
facts for each window, and grounding checks their quotes. Only composition roots import `rules` and `testing`.
"""
