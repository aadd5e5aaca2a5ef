"""From a saved state to grounded assertions: readers, windows, extractors (rules or a model), grounding, judges.

The agents, the pipeline and everything above them import it; only composition roots import `rules` and `testing`.
"""
