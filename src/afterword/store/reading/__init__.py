"""Reads what is known in a scope, for recall and for lists: snapshots, views, vectors, lists and pages of facts."""
