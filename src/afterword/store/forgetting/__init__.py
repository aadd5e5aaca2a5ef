"""Forgetting for good: rows are erased, words blanked, and tombstones keep them from coming back.

The transfer of stores, the pipeline, the client and the command line import it.
"""
