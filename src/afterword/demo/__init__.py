"""The main job on bundled sessions: saved by AutoGen 0.7.5 (`save_state`), spoken by an invented user, times set by hand."""
