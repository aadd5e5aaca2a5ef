"""Merging and renaming scopes, and converting stored texts into Unicode NFC."""
