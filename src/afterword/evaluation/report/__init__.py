"""Show an evaluation: as a scorecard, a chart, a Markdown report and JSON. Pure."""
