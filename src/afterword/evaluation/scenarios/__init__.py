"""Scenarios: conversations with known facts, and the saved states that AutoGen would leave of them."""
