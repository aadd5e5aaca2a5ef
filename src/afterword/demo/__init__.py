"""The main job on bundled sessions, as AutoGen 0.7.5 saved them; the user is invented, the times were set by hand."""
