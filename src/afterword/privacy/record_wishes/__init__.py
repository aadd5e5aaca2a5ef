"""Wishes that something said is not kept, in other words than "off the record": vocabularies and clauses.

Pure. Imported by `afterword.privacy`.
"""
