"""Rumor for PyTorch: train one model on machines that belong to different people, with three added lines."""
from ._library import MismatchError, RumorError

__all__ = ['MismatchError', 'RumorError']
