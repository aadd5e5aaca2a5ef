"""Compare the facts in a store with the facts that a scenario expects. Only `opinions` asks a model."""
