"""Tiny Vision Transformers with random weights, and what Python `transformers` computes with them.

Each folder holds a checkpoint in Hugging Face layout (`config.json`, `model.safetensors`) and `expected.safetensors`: pixels, the tokens
after the embeddings and after every layer, and the image's embedding. Weights are drawn far larger than at the start of a training, so that
every part of a layer (biases, norms, layer scales, registers) changes the numbers by more than the tests' tolerance.

Usage: generate.py, in an environment with requirements.txt.
"""

import pathlib

import torch
import transformers
from safetensors.torch import save_file

folder = pathlib.Path(__file__).parent
WIDTH, LAYERS, HEADS = 24, 2, 3


def randomise(model, seed):
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        values = torch.randn(parameter.shape, generator=generator)
        if "norm" in name or "layrnorm" in name or "lambda" in name:
            values = (1.0 if name.endswith(("weight", "lambda1")) else 0.0) + 0.3 * values
        elif parameter.dim() >= 2 and name.endswith("weight"):
            values = 1.2 * values / parameter[0].numel() ** 0.5
        else:
            values = 0.5 * values
        parameter.data = values
    return model.eval()


def clip(seed, **settings):
    config = transformers.CLIPVisionConfig(
        hidden_size=WIDTH, intermediate_size=2 * WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        projection_dim=16, image_size=32, patch_size=8, **settings,
    )
    return randomise(transformers.CLIPVisionModelWithProjection(config), seed)


def dinov2(seed, model=transformers.Dinov2Model, config=transformers.Dinov2Config, **settings):
    config = config(
        hidden_size=WIDTH, num_hidden_layers=LAYERS, num_attention_heads=HEADS, mlp_ratio=2, image_size=42, patch_size=7, **settings,
    )
    return randomise(model(config), seed)


def registers(seed):
    return dinov2(seed, transformers.Dinov2WithRegistersModel, transformers.Dinov2WithRegistersConfig, num_register_tokens=4)


def expected(model, sizes, seed):
    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    for size in sizes:
        pixels = torch.randn([2, 3, size, size], generator=generator)
        with torch.no_grad():
            answer = model(pixel_values=pixels, output_hidden_states=True)
        tensors[f"{size}.pixels"] = pixels
        for number, tokens in enumerate(answer.hidden_states):
            tensors[f"{size}.layer.{number}"] = tokens
        tensors[f"{size}.embedding"] = answer.image_embeds if hasattr(answer, "image_embeds") else answer.pooler_output
    return {name: tensor.contiguous() for name, tensor in tensors.items()}


made_by = {"made_by": f"transformers {transformers.__version__}, torch {torch.__version__}"}
for name, model, sizes in [
    ("clip-quick-gelu", clip(1, hidden_act="quick_gelu"), [32]),
    ("clip-gelu", clip(2, hidden_act="gelu"), [32]),
    # 42 is the size of training; 28 and 63 need other positions.
    ("dinov2", dinov2(3), [42, 28, 63]),
    ("dinov2-registers", registers(4), [42, 28, 63]),
]:
    model.save_pretrained(folder / name)
    save_file(expected(model, sizes, 5), folder / name / "expected.safetensors", made_by)
