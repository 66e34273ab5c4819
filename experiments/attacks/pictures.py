"""Hostile pictures, made byte by byte: small files that become large, headers that lie, and mutations of honest files."""

from __future__ import annotations

import functools
import random
import struct
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SIDE = 7000


def deflated(size: int, byte: bytes = b"\0") -> bytes:
    """So many equal bytes, compressed."""
    packer, packed = zlib.compressobj(9), bytearray()
    block = byte * (1 << 20)
    while size > 0:
        packed += packer.compress(block[: min(size, len(block))])
        size -= len(block)
    return bytes(packed + packer.flush())


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_of(width: int, height: int, bits: int, color: int, *middle: bytes, interlaced: bool = False) -> bytes:
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, color, 0, 0, interlaced))
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(middle) + chunk(b"IEND", b"")


@functools.cache
def png(side: int, bits: int, color: int, interlaced: bool = False) -> bytes:
    """All zeros."""
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[color]
    row = 1 + (side * channels * bits + 7) // 8
    # Seven passes have a few more filter bytes.
    size = row * side + (8 * side if interlaced else 0)
    palette = [chunk(b"PLTE", b"\1\2\3" * 256)] if color == 3 else []
    return png_of(side, side, bits, color, *palette, chunk(b"IDAT", deflated(size)), interlaced=interlaced)


def png_with(kind: bytes, data: bytes) -> bytes:
    """A small picture with one more chunk."""
    pixels = chunk(b"IDAT", zlib.compress((b"\0" + bytes(48)) * 16))
    return png_of(16, 16, 8, 2, chunk(kind, data), pixels)


@functools.cache
def png_16_bit() -> bytes:
    """The one of the issue: 381 kB that become 392 MB."""
    return png(SIDE, 16, 6)


def segment(marker: int, data: bytes) -> bytes:
    return struct.pack(">BBH", 0xFF, marker, len(data) + 2) + data


def jpeg(side: int, *, scans: int = 0, components: int = 3) -> bytes:
    """A gray picture of few bytes. With `scans`, a progressive one with so many passes over all blocks."""
    blocks = ((side + 7) // 8) ** 2
    frame = struct.pack(">BHHB", 8, side, side, components) + b"".join(bytes([k + 1, 0x11, 0]) for k in range(components))
    tables = segment(0xDB, b"\0" + b"\1" * 64) + segment(0xC4, b"\0" + b"\1" + bytes(15) + b"\0")
    head = b"\xff\xd8" + tables

    def scan(which: list[int], data: bytes, first: int, last: int, bits: int) -> bytes:
        named = b"".join(bytes([k + 1, 0]) for k in which)
        return segment(0xDA, bytes([len(which)]) + named + bytes([first, last, bits])) + data

    if scans == 0:
        # Of each block, one bit for the mean and one for the rest.
        ac = segment(0xC4, b"\x10" + b"\1" + bytes(15) + b"\0")
        data = bytes((blocks * components * 2 + 7) // 8)
        return head + ac + segment(0xC0, frame) + scan(list(range(components)), data, 0, 63, 0) + b"\xff\xd9"
    # One symbol: the end of band for 2¹⁴ blocks and as many as 14 more bits say.
    ac = segment(0xC4, b"\x10" + b"\1" + bytes(15) + b"\xe0")
    parts = [head, ac, segment(0xC2, frame), scan(list(range(components)), bytes((blocks * components + 7) // 8), 0, 0, 0)]
    for number in range(scans - 1):
        bits, left = "", blocks
        while left >= 1 << 14:
            run = min(left, (1 << 15) - 1)
            bits += "0" + format(run - (1 << 14), "014b")
            left -= run
        # What is left is covered by one run too many.
        bits += "0" + "0" * 14
        bits += "1" * (-len(bits) % 8)
        data = int(bits, 2).to_bytes(len(bits) // 8, "big").replace(b"\xff", b"\xff\0")
        # Spectral bands in turn, so that no scan repeats another.
        band = 1 + number % 63
        parts.append(scan([number // 63 % components], data, band, band, 0))
    return b"".join(parts) + b"\xff\xd9"


def gif(side: int, canvas: int | None = None) -> bytes:
    """All zeros: codes grow until the table is full."""
    left, codes, bits = side * side, [], 9
    packed, held, count = bytearray(), 0, 0

    def put(code: int, width: int) -> None:
        nonlocal held, count
        held |= code << count
        count += width
        while count >= 8:
            packed.append(held & 255)
            held >>= 8
            count -= 8

    while left > 0:
        put(256, bits)
        bits, known, length = 9, 258, 1
        put(0, bits)
        left -= 1
        while left > 0 and known < 4095:
            length += 1
            put(known, bits)
            known += 1
            left -= length
            if known == 1 << bits and bits < 12:
                bits += 1
    put(257, bits)
    put(0, 7)
    codes = [bytes([len(packed[at : at + 255])]) + bytes(packed[at : at + 255]) for at in range(0, len(packed), 255)]
    whole = canvas or side
    head = b"GIF89a" + struct.pack("<HHBBB", whole, whole, 0xF7, 0, 0) + bytes(768)
    return head + b"," + struct.pack("<HHHHB", 0, 0, side, side, 0) + b"\x08" + b"".join(codes) + b"\0;"


def tiff(width: int, height: int, bits: int, samples: int, compression: int, data: bytes, *more: tuple[int, int, int, int], strip: int | None = None) -> bytes:
    entries = [
        (256, 4, 1, width), (257, 4, 1, height), (259, 3, 1, compression), (262, 3, 1, 2 if samples >= 3 else 1), (273, 4, 1, 8),
        (277, 3, 1, samples), (278, 4, 1, height), (279, 4, 1, len(data) if strip is None else strip), *more,
    ]  # fmt: skip
    at = 8 + len(data)
    if samples > 2:
        entries.append((258, 3, samples, at))
        data += struct.pack(f"<{samples}H", *[bits] * samples)
    else:
        entries.append((258, 3, samples, bits))
    if samples == 4:
        entries.append((338, 3, 1, 2))
    data += bytes(len(data) % 2)
    directory = struct.pack("<H", len(entries)) + b"".join(struct.pack("<HHII", *entry) for entry in sorted(entries)) + bytes(4)
    return b"II*\0" + struct.pack("<I", 8 + len(data)) + data + directory


@functools.cache
def tiff_bomb(side: int, bits: int, samples: int) -> bytes:
    return tiff(side, side, bits, samples, 8, deflated(side * side * samples * bits // 8))


def webp(width: int, height: int) -> bytes:
    """Lossless, of one color: twenty bytes for any size."""
    bits = [(width - 1, 14), (height - 1, 14), (0, 1), (0, 3), (0, 1), (0, 1), (0, 1)]
    for _ in range(5):
        bits += [(1, 1), (0, 1), (0, 1), (0, 1)]
    value = count = 0
    for number, width_ in bits:
        value |= number << count
        count += width_
    data = b"\x2f" + value.to_bytes((count + 7) // 8 + 4, "little")
    data += bytes(len(data) % 2)
    body = b"WEBPVP8L" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


def webp_canvas(width: int, height: int) -> bytes:
    """A canvas with a small picture in it, as animations have."""
    extended = b"VP8X" + struct.pack("<I", 10) + b"\0\0\0\0" + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    body = b"WEBP" + extended + webp(16, 16)[12:]
    return b"RIFF" + struct.pack("<I", len(body)) + body


def bmp(width: int, height: int, bits: int, compression: int = 0, data: bytes = b"") -> bytes:
    palette = bytes(1024) if bits == 8 else bytes(8) if bits == 1 else b""
    at = 54 + len(palette)
    info = struct.pack("<IiiHHIIiiII", 40, width, height, 1, bits, compression, len(data), 2835, 2835, 0, 0)
    return b"BM" + struct.pack("<IHHI", at + len(data), 0, 0, at) + info + palette + data


def bmp_runs(side: int) -> bytes:
    """Compressed by runs: rows that end at once."""
    return bmp(side, side, 8, 1, b"\0\0" * side + b"\0\1")


@functools.cache
def bombs() -> dict[str, bytes]:
    """Within the limits of pixels and bytes, and as large as these allow."""
    return {
        "PNG, 16-bit RGBA": png_16_bit(),
        "PNG, 16-bit RGBA, interlaced": png(SIDE, 16, 6, interlaced=True),
        "PNG, 16-bit RGBA, 5000 × 5000": png(5000, 16, 6),
        "PNG, RGBA": png(SIDE, 8, 6),
        "PNG, interlaced": png(SIDE, 8, 2, interlaced=True),
        "PNG, palette": png(SIDE, 8, 3),
        "PNG, one bit": png(SIDE, 1, 0),
        "PNG, 16-bit gray": png(SIDE, 16, 0),
        "JPEG": jpeg(SIDE),
        "JPEG, gray": jpeg(SIDE, components=1),
        "GIF": gif(SIDE),
        "TIFF, 16-bit RGBA": tiff_bomb(SIDE, 16, 4),
        "TIFF, RGB": tiff_bomb(SIDE, 8, 3),
        "WebP": webp(SIDE, SIDE),
        "BMP, runs": bmp_runs(SIDE),
        "BMP, one bit": bmp(SIDE, SIDE, 1, 0, bytes((SIDE + 31) // 32 * 4 * SIDE)),
    }


@functools.cache
def giants() -> dict[str, bytes]:
    """Headers of pictures that are too large, or whose sizes overflow when they are multiplied."""
    most, signed = 2**32 - 1, 2**31 - 1
    found = {
        "JPEG 65535²": jpeg(64).replace(struct.pack(">HH", 64, 64), b"\xff\xff\xff\xff"),
        "GIF 65535²": gif(8).replace(struct.pack("<HHHH", 0, 0, 8, 8), struct.pack("<HHHH", 0, 0, 65535, 65535)),
        "GIF canvas 65535²": gif(8, canvas=65535),
        "WebP 16384²": webp(16384, 16384),
        "WebP canvas 2²⁴": webp_canvas(1 << 24, 1 << 8),
        "WebP canvas 2²⁴ × 2²⁴": webp_canvas(1 << 24, 1 << 24),
        "WebP lossy 16383²": (ROOT / "parity/photo/files/lossy.webp").read_bytes()[:26] + b"\xff\x3f\xff\x3f" + bytes(100),
        "BMP 2³¹ × −2³¹": bmp(signed, -(2**31), 32),
        "BMP 2³¹ × 1": bmp(signed, 1, 24),
        "BMP 7000², 32 bits, no pixels": bmp(SIDE, SIDE, 32),
        "BMP runs 2³¹": bmp(signed, signed, 8, 1, b"\0\1"),
        "TIFF strip of 2³² bytes": tiff(SIDE, SIDE, 8, 3, 1, b"\0" * 64, strip=most),
        "TIFF no pixels": tiff(SIDE, SIDE, 16, 4, 1, b"\0" * 64),
        "TIFF 2³²²": tiff(most, most, 16, 4, 1, b"\0" * 64),
        "TIFF 65535 samples": tiff(64, 64, 8, 1, 1, b"\0" * 64, (277, 3, 1, 65535)),
        "TIFF strips of one row": tiff(64, signed, 8, 1, 1, b"\0" * 64),
        "TIFF tile 2³¹": tiff(64, 64, 8, 1, 1, b"\0" * 64, (322, 4, 1, 2**31), (323, 4, 1, 2**31), (324, 4, 1, 8), (325, 4, 1, 64)),
        "TIFF count 2³²": tiff(64, 64, 8, 1, 1, b"\0" * 64, (34675, 7, most, 8), (700, 1, most, 0)),
        "TIFF next directory is itself": tiff(64, 64, 8, 1, 1, b"\0" * 4096)[:-4] + struct.pack("<I", 8 + 4096),
    }
    for width, height in ((signed, signed), (most, 1), (1, signed), (0, 0), (SIDE * 10, SIDE)):
        found[f"PNG {width} × {height}"] = png_of(width, height, 16, 6, chunk(b"IDAT", deflated(1000)))
    return found


@functools.cache
def metadata() -> dict[str, bytes]:
    """Small pictures with much beside them."""
    packed, photo = deflated(1 << 30), (ROOT / "parity/photo/files/rgb.jpg").read_bytes()
    exif = b"Exif\0\0II*\0\x08\0\0\0" + struct.pack("<H", 5000) + struct.pack("<HHII", 0x10F, 2, 2**32 - 1, 8) * 5000
    profile = b"ICC_PROFILE\0"
    pieces = b"".join(segment(0xE2, profile + bytes([number, 255]) + b"\xff" * 65000) for number in range(1, 256))
    many = b"".join(segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + b"<x:" * 20000) for _ in range(200))
    cycle = b"II*\0\x08\0\0\0" + b"\1\0" + struct.pack("<HHII", 0x8769, 4, 1, 8) + struct.pack("<I", 8)
    return {
        "PNG, color profile of 1 GB": png_with(b"iCCP", b"p\0\0" + packed),
        "PNG, text of 1 GB": png_with(b"zTXt", b"t\0\0" + packed),
        "PNG, international text of 1 GB": png_with(b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0" + packed),
        "PNG, Exif of 16 MB": png_with(b"eXIf", b"II*\0\x08\0\0\0" + b"\xff" * (16 << 20)),
        "PNG, chunk of 2³¹ bytes": png_with(b"tEXt", b"t\0t")[:33] + struct.pack(">I", 2**31 - 1) + b"tEXt",
        "PNG, 300,000 chunks": png_of(16, 16, 8, 2, chunk(b"tEXt", b"t\0t") * 300_000, chunk(b"IDAT", zlib.compress((b"\0" + bytes(48)) * 16))),
        "JPEG, 5,000 Exif entries of 4 GB": photo[:2] + segment(0xE1, exif[:65000]) + photo[2:],
        "JPEG, Exif that contains itself": photo[:2] + segment(0xE1, b"Exif\0\0" + cycle) + photo[2:],
        "JPEG, profile of 16 MB": photo[:2] + pieces + photo[2:],
        "JPEG, XMP of 12 MB": photo[:2] + many + photo[2:],
        "JPEG, a million markers": photo[:2] + b"\xff\xfe\0\2" * 1_000_000 + photo[2:],
        "JPEG, fill bytes": photo[:2] + b"\xff" * (16 << 20) + photo[2:],
    }


def honest() -> list[Path]:
    files = sorted((ROOT / "parity/photo/files").iterdir())
    return [path for path in files if path.is_file()] + [ROOT / "examples/madagascar.jpg", ROOT / "examples/sinai.jpg"]


def mutated(data: bytes, chance: random.Random) -> bytes:
    """One to three changes."""
    changed = bytearray(data)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(changed)) if chance.random() < 0.5 else chance.randrange(min(len(changed), 200))
        match chance.randrange(7):
            case 0:
                changed[at] ^= 1 << chance.randrange(8)
            case 1:
                changed[at] = chance.choice((0, 1, 0x7F, 0x80, 0xFF))
            case 2:
                size = chance.choice((2, 4, 8))
                changed[at : at + size] = chance.choice((b"\xff", b"\0", b"\x7f")) * size
            case 3:
                del changed[at : at + chance.randint(1, 64)]
            case 4:
                changed[at:at] = changed[at : at + chance.randint(1, 512)]
            case 5:
                changed[at:at] = chance.randbytes(chance.randint(1, 64))
            case _:
                end = chance.randrange(len(changed))
                changed[at : at + 32], changed[end : end + 32] = changed[end : end + 32], changed[at : at + 32]
        changed = changed or bytearray(b"\0")
    return bytes(changed)


def mutations(each: int, seed: int) -> Iterator[tuple[str, bytes]]:
    chance = random.Random(seed)
    for path in honest():
        data = path.read_bytes()
        for number in range(each):
            yield f"{path.name} {number}", mutated(data, chance)


def truncations(each: int, seed: int) -> Iterator[tuple[str, bytes]]:
    chance = random.Random(seed)
    for path in honest():
        data = path.read_bytes()
        for _ in range(each):
            length = chance.randrange(len(data)) if chance.random() < 0.5 else chance.randrange(min(300, len(data)))
            yield f"{path.name}, {length} bytes", data[:length]


def spread(count: int, make: Callable[[], dict[str, bytes]]) -> list[tuple[str, bytes]]:
    """So many of them in turn."""
    named = list(make().items())
    return [named[number % len(named)] for number in range(count)]
