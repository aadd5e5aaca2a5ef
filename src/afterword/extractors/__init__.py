"""From a saved state to grounded candidates: readers, windows, extractors, grounding, judges."""
