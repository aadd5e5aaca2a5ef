"""The offline extractor and judge: English rules that need no model, no key and no network.

The pipeline, the agents and the store do not import them, with two exceptions: `pipeline.session` and
`agents.extractor_agent` use them by default.
"""

from afterword.extractors.rules.extractor import RulesExtractor, RulesJudge

__all__ = ["RulesExtractor", "RulesJudge"]
