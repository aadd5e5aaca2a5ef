"""Extraction and judging by a language model: client, prompts, modes, prices."""
