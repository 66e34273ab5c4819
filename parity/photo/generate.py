"""Small pictures of every kind, and what Pillow, transformers and torchvision make of them.

Everything here is synthetic: pictures and colour profiles are computed by this script.
Writes `files/*`, `cases.json`, `expected.bin` (RGB, row by row) and `prepared.bin` (float32 or
bytes, thinned out), which `cases.json` points into.
"""

import io
import json
import struct
import sys
import zlib
from pathlib import Path

import numpy as np
import PIL
import pillow_heif
import torchvision
import transformers
from PIL import Image, ImageCms, ImageOps, features
from PIL.TiffImagePlugin import IFDRational
from torchvision.transforms import functional as F
from transformers import BitImageProcessorPil, CLIPImageProcessorPil

HERE = Path(__file__).parent
FILES = HERE / "files"
BICUBIC = torchvision.transforms.InterpolationMode.BICUBIC


def scene(width=40, height=29):
    """A picture with gradients, edges and a little texture."""
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    u, v = x / max(width - 1, 1), y / max(height - 1, 1)
    red = 40 + 180 * u
    green = 30 + 150 * v + 20 * np.sin(9 * u)
    blue = 220 - 160 * u * v
    disc = (u - 0.3) ** 2 + (v - 0.35) ** 2 < 0.05
    image = np.stack([red, green, blue], -1)
    image[disc] = [235, 180, 40]
    image += 6 * np.sin(1.7 * x + 0.9 * y)[..., None]
    return Image.fromarray(np.clip(np.rint(image), 0, 255).astype(np.uint8))


def pattern(width, height):
    """The same picture as `pattern` in parity_tests.rs, where it needs no file."""
    y, x = np.mgrid[0:height, 0:width].astype(np.int64)
    planes = [
        (x * (3 + c) + y * (5 - c) + ((x * y) >> 4) + 40 * (((x >> 4) ^ (y >> 4)) & 1)) & 255
        for c in range(3)
    ]
    return Image.fromarray(np.stack(planes, -1).astype(np.uint8))


# Colour profiles

def fixed(value):
    return struct.pack(">i", round(value * 65536))


def profile(space, tags):
    """An ICC profile of version 2 with some tags."""
    tags = {b"desc": b"desc\0\0\0\0" + struct.pack(">I", 5) + b"test\0" + bytes(78),
            b"cprt": b"text\0\0\0\0public domain\0",
            b"wtpt": b"XYZ \0\0\0\0" + fixed(0.9642) + fixed(1) + fixed(0.8249), **tags}
    table, data, offset = b"", b"", 128 + 4 + 12 * len(tags)
    for name, value in tags.items():
        value += bytes(-len(value) % 4)
        table += name + struct.pack(">II", offset + len(data), len(value))
        data += value
    body = struct.pack(">I", len(tags)) + table + data
    header = struct.pack(">I4sI4s4s4s12s4s4sII4sQI", 128 + len(body), b"test", 0x02400000, b"mntr", space,
                         b"XYZ ", struct.pack(">6H", 2026, 1, 1, 0, 0, 0), b"acsp", b"APPL", 0, 0, b"test", 0, 0)
    header += fixed(0.9642) + fixed(1) + fixed(0.8249) + b"test" + bytes(44)
    return header + body


def curve(function):
    points = [round(65535 * function(i / 255)) for i in range(256)]
    return b"curv\0\0\0\0" + struct.pack(">I256H", 256, *points)


def rgb_profile(primaries, function):
    """A profile of the primaries' xy with white D65, adapted to D50 by Bradford."""
    xyz = lambda x, y: np.array([x / y, 1, (1 - x - y) / y])
    matrix = np.stack([xyz(*p) for p in primaries], 1)
    white, d50 = xyz(0.3127, 0.3290), np.array([0.9642, 1, 0.8249])
    matrix = matrix * np.linalg.solve(matrix, white)
    bradford = np.array([[0.8951, 0.2664, -0.1614], [-0.7502, 1.7135, 0.0367], [0.0389, -0.0685, 1.0296]])
    adapt = np.linalg.inv(bradford) @ np.diag((bradford @ d50) / (bradford @ white)) @ bradford
    columns = (adapt @ matrix).T
    tags = {name: b"XYZ \0\0\0\0" + b"".join(map(fixed, column)) for name, column in zip((b"rXYZ", b"gXYZ", b"bXYZ"), columns)}
    return profile(b"RGB ", {**tags, **{name: curve(function) for name in (b"rTRC", b"gTRC", b"bTRC")}})


def srgb_tone(v):
    return v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4


DISPLAY_P3 = rgb_profile([(0.680, 0.320), (0.265, 0.690), (0.150, 0.060)], srgb_tone)
ADOBE_RGB = rgb_profile([(0.64, 0.33), (0.21, 0.71), (0.15, 0.06)], lambda v: v**2.19921875)
GREY_18 = profile(b"GRAY", {b"kTRC": curve(lambda v: v**1.8)})


def to_srgb(image, icc):
    source = ImageCms.ImageCmsProfile(io.BytesIO(icc))
    return ImageCms.profileToProfile(image, source, ImageCms.createProfile("sRGB"), outputMode="RGB")


# Files that Pillow can't write

def png(width, height, depth, colour, rows):
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    raw = b"".join(b"\0" + row for row in rows)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))


def encode(image, kind, **options):
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def with_orientation(value):
    exif = Image.Exif()
    exif[0x0112] = value
    return exif


def with_gps(latitude, longitude, references=("N", "E")):
    exif = Image.Exif()
    # Exif data with nothing but a position is nothing to Pillow's PNG writer.
    exif[0x0131] = "generate.py"
    gps = exif.get_ifd(0x8825)
    rational = lambda parts: tuple(IFDRational(round(part * 1000), 1000) for part in parts)
    gps.update({1: references[0], 2: rational(latitude), 3: references[1], 4: rational(longitude)})
    return exif


def read(data):
    """What Pillow sees, upright."""
    return ImageOps.exif_transpose(Image.open(io.BytesIO(data))).convert("RGB")


def on_white(data):
    image = Image.open(io.BytesIO(data)).convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")


class Golden:
    def __init__(self):
        self.cases, self.expected = [], b""

    def add(self, name, data, expected=None, tolerance=0):
        (FILES / name).write_bytes(data)
        expected = (expected or read(data)).convert("RGB")
        rgb = expected.tobytes()
        offset = self.expected.find(rgb)
        if offset < 0:
            offset = len(self.expected)
            self.expected += rgb
        self.cases.append({"file": name, "width": expected.width, "height": expected.height, "offset": offset, "tolerance": tolerance})


def files(golden):
    picture = scene()
    # Decoders of lossy formats may round, and upsample colours, in their own ways.
    for orientation in range(1, 9):
        golden.add(f"orientation-{orientation}.jpg", encode(picture, "JPEG", quality=90, subsampling=0, exif=with_orientation(orientation)), tolerance=2)
    for name, options in {"420": dict(subsampling=2), "422": dict(subsampling=1), "444": dict(subsampling=0), "progressive": dict(progressive=True),
                          "restarts": dict(restart_marker_rows=1), "rgb": dict(keep_rgb=True)}.items():
        golden.add(f"{name}.jpg", encode(picture, "JPEG", quality=92, **options), tolerance=3)
    golden.add("grey.jpg", encode(picture.convert("L"), "JPEG", quality=92), tolerance=1)
    cmyk = encode(picture.convert("CMYK"), "JPEG", quality=95)
    golden.add("cmyk.jpg", cmyk, tolerance=2)
    # The same data, said to be YCCK: other colours, but the same to every decoder.
    adobe = cmyk.index(b"Adobe")
    golden.add("ycck.jpg", cmyk[:adobe + 11] + b"\x02" + cmyk[adobe + 12:], tolerance=3)
    # A second picture behind the first, as telephones store depth and gain maps.
    golden.add("two-pictures.jpg", encode(picture, "JPEG", quality=92) + encode(scene(16, 16), "JPEG"), tolerance=3)

    golden.add("rgb.png", encode(picture, "PNG"))
    golden.add("grey.png", encode(picture.convert("L"), "PNG"))
    golden.add("bits.png", encode(picture.convert("1"), "PNG"))
    golden.add("palette.png", encode(picture.quantize(32), "PNG"))
    golden.add("orientation-3.png", encode(picture, "PNG", exif=with_orientation(3)))
    array = np.asarray(picture).astype(np.uint32)
    deep = array * 257 + (array * 7919 + np.arange(40)[None, :, None] * 31) % 200 - 100
    deep = np.clip(deep, 0, 65535).astype(np.uint16)
    rounded = Image.fromarray(((deep.astype(np.uint32) + 128) // 257).astype(np.uint8))
    golden.add("deep.png", png(40, 29, 16, 2, [row.astype(">u2").tobytes() for row in deep]), rounded)
    golden.add("deep-grey.png", png(40, 29, 16, 0, [row[:, 1].astype(">u2").tobytes() for row in deep]), rounded.getchannel(1))
    alpha = Image.fromarray(np.clip(np.mgrid[0:29, 0:40][1] * 7 - 20, 0, 255).astype(np.uint8))
    clear = picture.copy()
    clear.putalpha(alpha)
    for name, image, options in [("alpha.png", clear, {}), ("grey-alpha.png", clear.convert("LA"), {}),
                                 ("palette-alpha.png", picture.quantize(16), dict(transparency=3)), ("alpha.webp", clear, dict(lossless=True, exact=True))]:
        data = encode(image, name.split(".")[1].upper(), **options)
        golden.add(name, data, on_white(data), tolerance=1)

    golden.add("p3.jpg", p3 := encode(picture, "JPEG", quality=95, subsampling=0, icc_profile=DISPLAY_P3), to_srgb(read(p3), DISPLAY_P3), tolerance=6)
    for name, kind, icc in [("p3.png", "PNG", DISPLAY_P3), ("adobe.png", "PNG", ADOBE_RGB), ("adobe.tif", "TIFF", ADOBE_RGB), ("p3.webp", "WEBP", DISPLAY_P3)]:
        options = dict(lossless=True) if kind == "WEBP" else {}
        golden.add(name, encode(picture, kind, icc_profile=icc, **options), to_srgb(picture, icc), tolerance=2)
    grey = picture.convert("L")
    golden.add("grey-18.png", encode(grey, "PNG", icc_profile=GREY_18), to_srgb(grey, GREY_18), tolerance=2)
    golden.add("broken-profile.png", encode(picture, "PNG", icc_profile=DISPLAY_P3[:200]), picture)
    golden.add("orientation-6-p3.jpg", data := encode(picture, "JPEG", quality=95, subsampling=0, icc_profile=DISPLAY_P3, exif=with_orientation(6)),
               to_srgb(read(data), DISPLAY_P3), tolerance=6)

    golden.add("rgb.webp", encode(picture, "WEBP", lossless=True))
    golden.add("lossy.webp", encode(picture, "WEBP", quality=90), tolerance=4)
    golden.add("orientation-8.webp", encode(picture, "WEBP", lossless=True, exif=with_orientation(8)))
    other = Image.new("RGB", picture.size, "red")
    golden.add("animated.webp", encode(picture, "WEBP", lossless=True, save_all=True, append_images=[other]))
    golden.add("animated.gif", encode(picture, "GIF", save_all=True, append_images=[other]))
    golden.add("rgb.tif", encode(picture, "TIFF"))
    golden.add("lzw.tif", encode(picture, "TIFF", compression="tiff_lzw"))
    golden.add("deflate.tif", encode(picture, "TIFF", compression="tiff_adobe_deflate"))
    golden.add("orientation-6.tif", encode(picture, "TIFF", tiffinfo={0x0112: 6}))
    golden.add("cmyk.tif", encode(picture.convert("CMYK"), "TIFF"), tolerance=1)
    golden.add("rgb.bmp", encode(picture, "BMP"))
    golden.add("palette.bmp", encode(picture.quantize(32), "BMP"))

    pillow_heif.register_heif_opener()
    # libheif 1.15 doesn't crop what x265 pads to 64 pixels.
    wide = scene(80, 64)
    golden.add("rgb.heic", encode(wide, "HEIF", quality=90, chroma=444), tolerance=5)
    golden.add("orientation-6.heic", encode(wide, "HEIF", quality=90, chroma=444, exif=with_orientation(6).tobytes()), tolerance=5)
    golden.add("rgb.avif", encode(picture, "AVIF", quality=90, subsampling="4:4:4"), tolerance=5)
    golden.add("p3.avif", data := encode(picture, "AVIF", quality=95, subsampling="4:4:4", icc_profile=DISPLAY_P3), to_srgb(read(data), DISPLAY_P3), tolerance=8)


def gps():
    """Files with a position, and the position or None."""
    tiny = Image.new("RGB", (8, 8))
    cases = [("paris", with_gps((48.0, 51.0, 24.0), (2.0, 21.0, 7.56)), [48.0 + 51 / 60 + 24 / 3600, 2 + 21 / 60 + 7.56 / 3600]),
             ("rio", with_gps((22.0, 54.6, 0.0), (43.0, 10.2, 0.0), ("S", "W")), [-22.91, -43.17]),
             ("no-fix", with_gps((0.0, 0.0, 0.0), (0.0, 0.0, 0.0)), None),
             ("too-far-north", with_gps((91.0, 0.0, 0.0), (2.0, 0.0, 0.0)), None),
             ("no-reference", with_gps((48.0, 0.0, 0.0), (2.0, 0.0, 0.0), ("", "")), None),
             ("minutes", with_gps((48.0, 75.0, 0.0), (2.0, 0.0, 0.0)), None),
             ("none", Image.Exif(), None)]
    listed = []
    for name, exif, position in cases:
        (FILES / f"gps-{name}.jpg").write_bytes(encode(tiny, "JPEG", exif=exif))
        listed.append({"file": f"gps-{name}.jpg", "position": position})
    (FILES / "gps-paris.png").write_bytes(encode(tiny, "PNG", exif=with_gps((48.0, 51.0, 24.0), (2.0, 21.0, 7.56))))
    listed.append({"file": "gps-paris.png", "position": cases[0][2]})
    return listed


# What encoders get

STRIDE = 151


class Prepared:
    def __init__(self):
        self.bytes = b""

    def add(self, array):
        offset = len(self.bytes)
        self.bytes += np.ascontiguousarray(array).reshape(-1)[::STRIDE].tobytes()
        return offset


def preprocessing(prepared):
    clip = lambda shortest, crop: CLIPImageProcessorPil(size={"shortest_edge": shortest}, crop_size={"height": crop, "width": crop})
    imagenet = dict(image_mean=[0.485, 0.456, 0.406], image_std=[0.229, 0.224, 0.225])
    dino = BitImageProcessorPil(size={"shortest_edge": 256}, crop_size={"height": 224, "width": 224}, **imagenet)
    cases = [("clip", clip(224, 224), size) for size in [(331, 247), (247, 331), (1201, 900), (100, 61), (224, 224), (225, 224), (37, 900), (1, 1)]]
    # Tall pictures are resized down first.
    cases += [("clip", clip(224, 224), (400, 1024)), ("clip", clip(224, 224), (230, 700))]
    cases += [("clip-336", clip(336, 336), (500, 401)), ("dino", dino, (641, 480)), ("dino", dino, (200, 333))]
    # Smaller than the crop, by an even and an odd number.
    cases += [("clip-200", clip(200, 224), (331, 247)), ("clip-199", clip(199, 224), (90, 77))]
    listed = []
    for name, processor, (width, height) in cases:
        numbers = processor(pattern(width, height), return_tensors="np")["pixel_values"][0]
        assert numbers.dtype == np.float32
        listed.append({"processor": name, "width": width, "height": height, "offset": prepared.add(numbers)})
    return listed


def views(prepared):
    listed = []
    for width, height in [(331, 247), (301, 500)]:
        resized = F.resize(pattern(width, height), 256, BICUBIC)
        crops = np.stack([np.asarray(crop) for crop in F.ten_crop(resized, 224)])
        listed.append({"kind": "ten-crop", "width": width, "height": height, "offset": prepared.add(crops)})
    for left, top, w, h in [(0, 0, 300, 200), (17, 9, 55, 73), (100, 40, 7, 5)]:
        crop = F.resized_crop(pattern(300, 200), top, left, h, w, [224, 224], BICUBIC)
        listed.append({"kind": "resized-crop", "area": [left, top, w, h], "offset": prepared.add(np.asarray(crop))})
    return listed


def main():
    FILES.mkdir(exist_ok=True)
    for old in FILES.iterdir():
        old.unlink()
    golden, prepared = Golden(), Prepared()
    files(golden)
    result = {
        "made_by": {"python": sys.version.split()[0], "pillow": PIL.__version__, "numpy": np.__version__, "transformers": transformers.__version__,
                    "torchvision": torchvision.__version__, "pillow_heif": pillow_heif.__version__,
                    "libjpeg_turbo": features.version("libjpeg_turbo"), "littlecms2": features.version("littlecms2")},
        "files": golden.cases,
        "gps": gps(),
        "stride": STRIDE,
        "preprocessing": preprocessing(prepared),
        "views": views(prepared),
    }
    (HERE / "cases.json").write_text(json.dumps(result, indent=1) + "\n")
    (HERE / "expected.bin").write_bytes(golden.expected)
    (HERE / "prepared.bin").write_bytes(prepared.bytes)


if __name__ == "__main__":
    main()
