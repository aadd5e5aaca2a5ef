"""Forgetting for good: rows are erased, words blanked, and tombstones keep them from coming back.

Also retention, which forgets what is old, and pauses, during which no session of a scope is stored.
"""
