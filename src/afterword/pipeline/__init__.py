"""Saved sessions in, facts out: one session, a batch of them, the rules of resolution."""
