"""The store: tables and migrations, and functions that read and write sessions, runs, facts, reviews, costs and jobs.

Most functions are synchronous. They take an open transaction: `database.engine.Store` opens it in one of its threads.
Of afterword's packages, this one imports only `facts`, `privacy` and `recall`.
"""
