"""LocDiff in PyTorch: the network and the likelihood objective, on any device.

The operations equal those of the Rust program, and model directories are the same: a model trained here opens with
``locdiff.open``, and a model trained by ``locdiff train`` opens here.

>>> import torch
>>> from locdiff.torch import LocDiff, MovingAverage
>>> _ = torch.manual_seed(0)
>>> embeddings = torch.randn(64, 16)                        # of images, by any encoder
>>> latitude, longitude = 120 * torch.rand(64) - 60, 360 * torch.rand(64) - 180     # degrees
>>> model = LocDiff(max_degree=5, condition_size=16, bottleneck=16)
>>> model.standardize(embeddings)
>>> optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=5e-4)
>>> average = MovingAverage(model, decay=0.999)
>>> for _ in range(3):
...     loss = model(embeddings, latitude, longitude)       # nats per image
...     optimizer.zero_grad()
...     loss.backward()
...     _ = torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
...     optimizer.step()
...     average.update(model)
>>> import tempfile
>>> directory = tempfile.mkdtemp()
>>> average.model.save(directory, encoder="my encoder, version 1")
>>> again = LocDiff.open(directory)
>>> again.coefficients(embeddings).shape                    # of the log-densities, one row per image
torch.Size([64, 36])

``LocDiff`` is a plain module whose ``forward`` returns the training loss, so ``DistributedDataParallel``, Lightning and
Accelerate wrap it as they wrap any other module. ``Shards`` reads the embeddings that ``locdiff embed`` wrote;
``examples/torchrun.py`` trains with both on several processes or hosts.
"""

from .._errors import MissingPackageError

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise MissingPackageError("locdiff.torch needs torch: pip install 'locdiff[torch]'") from error

from ._average import MovingAverage
from ._model import LocDiff
from ._network import Denoiser
from ._objective import likelihood_loss, log_density
from ._shards import Shards
from ._sphere import SphereGrid, encode

__all__ = ["Denoiser", "LocDiff", "MovingAverage", "Shards", "SphereGrid", "encode", "likelihood_loss", "log_density"]
