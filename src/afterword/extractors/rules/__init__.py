"""The offline extractor and judge: English rules that need no model, no key and no network.

The pipeline, the agents and the store do not import them, except as the defaults of two calls: in `pipeline.session`
and in `agents.extractor_agent`.
"""

from afterword.extractors.rules.extractor import RulesExtractor, RulesJudge

__all__ = ["RulesExtractor", "RulesJudge"]
