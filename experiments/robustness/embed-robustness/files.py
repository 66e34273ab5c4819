"""A folder of pictures as people have them: good ones of every kind, turned ones, broken ones, and some made to do harm. All synthetic, from a seed."""

import io
import pathlib
import random
import struct
import zlib

import numpy
from PIL import Image

SEED = 47


def picture(rng, mode="RGB"):
    """Smooth stains with some noise, so that files have natural sizes."""
    width, height = rng.randint(40, 400), rng.randint(40, 400)
    small = numpy.array([[[rng.randrange(256) for _ in range(3)] for _ in range(6)] for _ in range(5)], dtype=numpy.uint8)
    return Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC).convert(mode)


def saved(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def exif(orientation, place=None):
    tags = Image.Exif()
    tags[0x0112] = orientation
    if place:
        latitude, longitude = place
        degrees = lambda value: (abs(value), 0.0, 0.0)
        tags[0x8825] = {1: "N" if latitude >= 0 else "S", 2: degrees(latitude), 3: "E" if longitude >= 0 else "W", 4: degrees(longitude)}
    return tags


def png_bomb(width, height):
    """A header that promises gigabytes, and rows of nothing that compress a thousandfold."""
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = zlib.compress(bytes(10_000_000), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def jpeg_of_absurd_size(rng):
    data = bytearray(saved(picture(rng), "JPEG"))
    at = data.index(b"\xff\xc0")
    data[at + 5 : at + 9] = b"\xff\xff\xff\xff"
    return bytes(data)


def flipped_bits(rng, data):
    data = bytearray(data)
    for _ in range(20):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(data)


good = [
    lambda r: ("jpg", saved(picture(r), "JPEG", quality=r.randint(40, 95))),
    lambda r: ("jpg", saved(picture(r), "JPEG", exif=exif(r.randint(1, 8)))),
    lambda r: ("jpg", saved(picture(r), "JPEG", exif=exif(6, (r.uniform(-89, 89), r.uniform(-179, 179))))),
    lambda r: ("jpeg", saved(picture(r), "JPEG", progressive=True)),
    lambda r: ("jpg", saved(picture(r, "CMYK"), "JPEG")),
    lambda r: ("jpg", saved(picture(r, "L"), "JPEG")),
    lambda r: ("png", saved(picture(r), "PNG")),
    lambda r: ("png", saved(picture(r, "RGBA"), "PNG")),
    lambda r: ("png", saved(picture(r, "P"), "PNG")),
    lambda r: ("webp", saved(picture(r), "WEBP", quality=70)),
    lambda r: ("gif", saved(picture(r), "GIF", save_all=True, append_images=[picture(r)])),
    lambda r: ("tif", saved(picture(r), "TIFF", compression="tiff_lzw")),
    lambda r: ("bmp", saved(picture(r), "BMP")),
    # Named as something else.
    lambda r: ("png", saved(picture(r), "JPEG")),
]
bad = [
    lambda r: ("jpg", b""),
    lambda r: ("jpg", b"not a picture at all\n" * r.randint(1, 50)),
    lambda r: ("jpg", (lambda d: d[: len(d) // r.randint(2, 6)])(saved(picture(r), "JPEG"))),
    lambda r: ("png", (lambda d: d[: len(d) // r.randint(2, 6)])(saved(picture(r), "PNG"))),
    lambda r: ("webp", (lambda d: d[: len(d) // 2])(saved(picture(r), "WEBP"))),
    lambda r: ("png", flipped_bits(r, saved(picture(r), "PNG"))),
    lambda r: ("gif", flipped_bits(r, saved(picture(r), "GIF"))),
    lambda r: ("tif", flipped_bits(r, saved(picture(r), "TIFF"))),
    lambda r: ("jpg", flipped_bits(r, saved(picture(r), "JPEG"))),
    lambda r: ("jpg", jpeg_of_absurd_size(r)),
    lambda r: ("png", png_bomb(60_000, 60_000)),
    lambda r: ("png", png_bomb(9_000, 9_000)),
    lambda r: ("heic", b"\0\0\0\x18ftypheic\0\0\0\0heicmif1" + bytes(64)),
    lambda r: ("txt", b"holiday notes"),
    lambda r: ("bin", bytes(r.randrange(256) for _ in range(2000))),
]


def make(folder, count):
    folder = pathlib.Path(folder)
    rng = random.Random(SEED)
    for number in range(count):
        kinds = good if rng.random() < 0.8 else bad
        extension, data = rng.choice(kinds)(rng)
        path = folder / f"{number % 37:02}" / f"{number:05}.{extension}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
