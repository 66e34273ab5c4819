"""Embeddings from the Parquet shards of ``locdiff embed``, read by the loader of ``locdiff train``."""

import os
from collections.abc import Iterator

import torch
from torch import Tensor

from .. import _native


class Shards(Iterator[tuple[Tensor, Tensor, Tensor]]):
    """Shuffled batches: embeddings ``[rows, width]``, latitudes and longitudes in degrees. Without end, unless ``epochs`` is given.

    ``path`` is a directory of shards. ``batch`` is the number of rows of all ranks together. Each rank
    gets the same number of rows of the same global batch: rank r of n gets part r of n. So which rows form a batch depends on
    ``seed`` only, not on the number of ranks, and with the same seed and ``validation_share`` the batches are those of
    ``locdiff train``. Each rank reads all shards. ``rank`` and ``world`` are by default those that ``torchrun`` set, or 0 and 1.

    ``position`` says where the stream goes on; store it in checkpoints, and pass it to continue there, with any number of ranks.
    ``validation_share`` is the share of rows that is held out, chosen by their ids.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        batch: int,
        *,
        rank: int | None = None,
        world: int | None = None,
        seed: int = 0,
        epochs: int | None = None,
        validation_share: float = 0.0,
        position: str | None = None,
    ) -> None:
        rank = int(os.environ.get("RANK", "0")) if rank is None else rank
        world = int(os.environ.get("WORLD_SIZE", "1")) if world is None else world
        self._native = _native.Shards(os.fspath(path), batch, seed, epochs, validation_share, rank, world, position)

    @property
    def encoder(self) -> str:
        """The record of the encoder, for ``LocDiff.save``."""
        return self._native.encoder

    @property
    def width(self) -> int:
        """The length of an embedding."""
        return self._native.width

    @property
    def rows(self) -> int:
        """The number of rows in all shards."""
        return self._native.rows

    @property
    def position(self) -> str:
        """Where the stream goes on after the last batch; the same text on all ranks."""
        return self._native.position

    def __next__(self) -> tuple[Tensor, Tensor, Tensor]:
        embeddings, latitude, longitude = next(self._native)
        return torch.from_numpy(embeddings), torch.from_numpy(latitude), torch.from_numpy(longitude)
