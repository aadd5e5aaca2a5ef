"""The pipeline: from saved sessions to facts. One session, a batch, consolidation, imports, budgets.

Clients, the command line and the evaluation import it. It imports the extractors and the store.
"""
