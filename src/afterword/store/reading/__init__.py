"""Reading what a scope holds for recall: snapshots, views, vectors."""
