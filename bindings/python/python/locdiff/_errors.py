"""Exceptions. All of them are :class:`Error`, and also the built-in exception that fits."""

from __future__ import annotations


class Error(Exception):
    """Anything that locdiff reports."""


class ModelError(Error, ValueError):
    """A model is unknown, or its files are damaged."""


class ModelMissingError(ModelError, OSError):
    """A model is known, but not on this machine. The message explains how to get it."""


class ImageError(Error, ValueError):
    """An image cannot be decoded."""


class ImageFileError(ImageError, OSError):
    """The file of an image cannot be opened."""


class NoAnswerError(Error, ValueError):
    """The model has no answer: the image is not of its kind, or was not taken where it was said to be."""


class BatchError(Error, RuntimeError):
    """A batch cannot be planned, run or finished."""


class OptionError(Error, ValueError):
    """An argument makes no sense."""


class ForkError(Error, RuntimeError):
    """locdiff was used before the process was forked: its threads are not copied."""


class MissingPackageError(Error, ImportError):
    """A package that is not required is needed for this. The message explains how to install it."""
