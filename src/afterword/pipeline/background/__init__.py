"""Background work: periodic jobs under leases, their schedule, and workers that share a queue.

The command line imports it. It imports the pipeline and the store.
"""
