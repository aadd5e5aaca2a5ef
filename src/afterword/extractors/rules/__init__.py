"""The offline extractor: English rules that need no model, no key and no network."""

from afterword.extractors.rules.extractor import RulesExtractor
from afterword.extractors.rules.vocabulary import SINGLE_VALUED

__all__ = ["SINGLE_VALUED", "RulesExtractor"]
