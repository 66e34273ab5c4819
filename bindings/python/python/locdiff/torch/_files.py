"""Model directories: ``config.json``, ``model.safetensors``, ``condition.safetensors`` and ``README.md``.

The safetensors format is 8 bytes of length, a JSON header, then the numbers (little endian).
"""

import ctypes
import hashlib
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

FORMAT, VERSION, FORMAT_1 = "locdiff-model", 2, "locdiff-diffusion"
CONFIG, WEIGHTS, CONDITION, CARD = "config.json", "model.safetensors", "condition.safetensors", "README.md"
_TYPES = {"F32": torch.float32, "F64": torch.float64}


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file."""
    _check_byte_order()
    data = bytearray(path.read_bytes())
    try:
        start = 8 + int.from_bytes(data[:8], "little")
        header = json.loads(data[8:start])
        header.pop("__metadata__", None)
        tensors = {}
        for name, entry in header.items():
            begin, end = entry["data_offsets"]
            numbers = torch.frombuffer(data[start + begin : start + end], dtype=_TYPES[entry["dtype"]])
            tensors[name] = numbers.reshape(entry["shape"]).clone()
    except (ValueError, KeyError, RuntimeError) as error:
        raise ValueError(f"{path} is not a safetensors file of 32 or 64 bit floats: {error}") from error
    return tensors


def write_tensors(path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, str] | None = None) -> None:
    """Writes a safetensors file. A file that exists is whole."""
    _check_byte_order()
    header: dict[str, Any] = {"__metadata__": dict(about)} if about else {}
    parts, offset = [], 0
    for name, tensor in sorted(tensors.items()):
        tensor = tensor.detach().cpu().contiguous()
        dtype = next(key for key, value in _TYPES.items() if value == tensor.dtype)
        size = tensor.numel() * tensor.element_size()
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [offset, offset + size]}
        parts.append(ctypes.string_at(tensor.data_ptr(), size))
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    partial = path.with_suffix(".partial")
    partial.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(parts))
    os.replace(partial, path)


def read_config(directory: Path) -> dict[str, Any]:
    """``config.json`` of a diffusion."""
    path = directory / CONFIG
    if not path.is_file() and (directory / "model" / CONFIG).is_file():
        raise ValueError(f"{directory} is a training run; its model is {directory / 'model'}")
    config: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    found = (config.get("format"), config.get("version"))
    if found == (FORMAT, VERSION):
        if config["kind"] != "diffusion":
            raise ValueError(f"{directory} is of kind {config['kind']}, diffusion was expected")
    elif found == (FORMAT_1, 1):
        # Version 1 names its encoder by a line of text, and stores nothing of inference and training.
        config["encoder"] = {"identity": config.get("encoder", "unknown")}
        config["inference"], config["training"] = {}, None
    else:
        raise ValueError(f"{path} is of format {found[0]} version {found[1]}, {FORMAT} version {VERSION} was expected")
    return config


def write_config(directory: Path, config: Mapping[str, Any]) -> None:
    """Writes ``config.json`` with the checksums of the files beside it. Last: a directory with a configuration is whole."""
    files = [name for name in (CONDITION, WEIGHTS) if (directory / name).is_file()]
    whole = {
        "format": FORMAT,
        "version": VERSION,
        "kind": "diffusion",
        "written_by": f"locdiff.torch with PyTorch {torch.__version__}",
        "files": {name: hashlib.sha256((directory / name).read_bytes()).hexdigest() for name in files},
        **config,
    }
    (directory / CONFIG).write_text(json.dumps(whole, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def encoder_record(encoder: str | Mapping[str, Any]) -> dict[str, Any]:
    """An encoder as ``config.json`` stores it, from a record, its JSON (as Parquet shards have it) or a line of text."""
    if isinstance(encoder, Mapping):
        return dict(encoder)
    if encoder.startswith("{"):
        record: dict[str, Any] = json.loads(encoder)
        return record
    return {"identity": encoder}


def _check_byte_order() -> None:
    if sys.byteorder != "little":
        raise NotImplementedError("model directories can be read and written on little-endian machines only")
