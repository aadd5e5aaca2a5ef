"""The offline extractor and judge: English rules that need no model, no key and no network.

Only composition roots import them, for example `workers`, the command line and the evaluation.
"""

from afterword.extractors.rules.extractor import RulesExtractor, RulesJudge

__all__ = ["RulesExtractor", "RulesJudge"]
