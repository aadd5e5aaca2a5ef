"""What an agent is told: the search index with its ranking, vectors, token counts, and the block that an agent reads.

Pure apart from the embedders in `vectors`. It imports no other packages than `afterword.facts` and
`afterword.privacy`.
"""
