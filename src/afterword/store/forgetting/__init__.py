"""Erasing for good: rows, words in other rows, and the tombstones that keep them gone."""
