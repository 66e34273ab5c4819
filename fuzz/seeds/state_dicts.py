"""Writes small PyTorch state dicts into fuzz/corpus/pickle: python3 fuzz/seeds/state_dicts.py

Needs Python alone. The tensors have the names of the encoders in parity/vision, and fewer numbers.
"""

import io
import json
import pickle
import struct
import sys
import types
import zipfile
from collections import OrderedDict
from math import prod
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

torch = types.ModuleType("torch")
utils = types.ModuleType("torch._utils")


def named(name, module):
    made = type(name, (), {"__module__": module.__name__})
    setattr(module, name, made)
    return made


STORAGES = {"F32": named("FloatStorage", torch), "F16": named("HalfStorage", torch), "BF16": named("BFloat16Storage", torch)}
BYTES = {"F32": 4, "F16": 2, "BF16": 2}


def _rebuild_tensor_v2():
    raise NotImplementedError


_rebuild_tensor_v2.__module__ = "torch._utils"
utils._rebuild_tensor_v2 = _rebuild_tensor_v2
sys.modules["torch"] = torch
sys.modules["torch._utils"] = utils


class Storage:
    def __init__(self, key, kind, count):
        self.key, self.kind, self.count = key, kind, count


class Tensor:
    def __init__(self, storage, shape):
        self.storage, self.shape = storage, shape

    def __reduce__(self):
        strides = tuple(prod(self.shape[at + 1 :]) for at in range(len(self.shape)))
        return _rebuild_tensor_v2, (self.storage, 0, self.shape, strides, False, OrderedDict())


class Pickler(pickle.Pickler):
    def persistent_id(self, value):
        if isinstance(value, Storage):
            return ("storage", STORAGES[value.kind], value.key, "cpu", value.count)
        return None


def small(name, shape):
    of_positions = "position" in name
    def size(at, size):
        if size <= 3:
            return size
        if of_positions and at + 1 < len(shape):
            return 5
        return 2 if len(shape) == 4 and at >= 2 else 4
    return tuple(size(at, number) for at, number in enumerate(shape))


def write(path, encoder, kind, compression):
    with open(ROOT / "parity/vision" / encoder / "model.safetensors", "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    header.pop("__metadata__", None)
    state, storages = OrderedDict(), []
    for name, facts in sorted(header.items()):
        if ".1." in name:
            continue
        shape = small(name, facts["shape"])
        storage = Storage(str(len(storages)), kind, prod(shape))
        storages.append(storage)
        state[name] = Tensor(storage, shape)
    data = io.BytesIO()
    Pickler(data, protocol=2).dump(state)
    with zipfile.ZipFile(path, "w", compression) as archive:
        def add(name, content):
            archive.writestr(zipfile.ZipInfo(f"archive/{name}"), content, compress_type=compression)
        add("data.pkl", data.getvalue())
        add("byteorder", b"little")
        for storage in storages:
            add(f"data/{storage.key}", bytes(BYTES[kind] * storage.count))
        add("version", b"3\n")


corpus = ROOT / "fuzz/corpus/pickle"
corpus.mkdir(parents=True, exist_ok=True)
write(corpus / "seed-dinov2", "dinov2", "F32", zipfile.ZIP_STORED)
write(corpus / "seed-clip-half", "clip-gelu", "F16", zipfile.ZIP_STORED)
write(corpus / "seed-registers-deflated", "dinov2-registers", "BF16", zipfile.ZIP_DEFLATED)
with zipfile.ZipFile(ROOT / "parity/geoclip/tiny-wheel.zip") as wheel:
    for name in wheel.namelist():
        if name.endswith(".pth"):
            (corpus / f"seed-{Path(name).stem}").write_bytes(wheel.read(name))
