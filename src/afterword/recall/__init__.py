"""What an agent is told: the search index with its ranking, vectors, token counts, and the block that an agent reads.

Pure apart from the embedders in `vectors`. The store, the extractors, the pipeline and the agents may import it.
It imports only `afterword.facts`, `afterword.privacy` and `afterword.errors`.
"""
