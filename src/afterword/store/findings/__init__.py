"""What agents found: rows, settings of a scope, and changes.

Imported by the other packages of `store`, by `pipeline`, `agents` and `client`. Facts are never derived from it.
"""
