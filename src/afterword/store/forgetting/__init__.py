"""Forgets content for good: deletes rows, blanks words, and stores tombstones, so that the content cannot come back.

Also retention, which forgets old content, and pauses, during which no session of a scope is stored.
"""
