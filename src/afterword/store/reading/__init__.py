"""Reading what a scope holds, for recall and for lists: snapshots, views, vectors, lists and pages of facts."""
