"""Parquet shards by the Rust loader: the same global batches for any number of ranks."""

from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from locdiff import OptionError, _native

EMBEDDINGS = str(Path(__file__).parents[3] / "experiments/end-to-end/embeddings")


def shards(
    batch: int = 64, epochs: int | None = None, rank: int = 0, world: int = 1, position: str | None = None
) -> _native.Shards:
    return _native.Shards(EMBEDDINGS, batch, 3, epochs, 0.1, rank, world, position)


def test_ranks_share_the_batches_of_one() -> None:
    whole, first, second = shards(), shards(rank=0, world=2), shards(rank=1, world=2)
    for one, a, b in islice(zip(whole, first, second, strict=False), 5):
        for column in range(3):
            assert np.array_equal(one[column], np.concatenate([a[column], b[column]]))
    assert first.position == second.position == whole.position
    # Goes on with another number of ranks.
    onward = shards(position=first.position)
    assert np.array_equal(next(onward)[0], next(whole)[0])


def test_an_epoch_has_every_row_that_is_not_held_out() -> None:
    one = shards(epochs=1)
    rows = sum(len(embeddings) for embeddings, _, _ in one)
    assert 0.85 * one.rows < rows < 0.95 * one.rows
    embeddings, latitudes, longitudes = next(shards())
    assert embeddings.shape == (64, one.width) and latitudes.shape == longitudes.shape == (64,)
    assert one.encoder.startswith("{")


def test_mistakes_are_named(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="batch is 7: use a multiple of the 2 ranks"):
        shards(batch=7, world=2)
    with pytest.raises(OptionError, match="rank is 2: there are 2 ranks"):
        shards(rank=2, world=2)
    with pytest.raises(OSError, match=str(tmp_path)):
        _native.Shards(str(tmp_path), 8, 0, None, 0.0, 0, 1, None)
