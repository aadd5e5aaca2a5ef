"""Choose what an agent is told: search index, ranking, vectors, token counts, and the text that the agent reads.

All of it is pure except the embedders in `vectors`: it uses no database, network or clock. Of the other packages of
afterword, only `afterword.facts` and `afterword.privacy` are imported.
"""
