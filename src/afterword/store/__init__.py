"""The store: tables and migrations, and functions that read and write sessions, runs, facts, reviews, costs and jobs.

The functions are synchronous and take the transaction that `database.engine.Store` opens in a thread of its own.
It imports no other packages than facts, privacy and recall.
"""
