"""The pictures that experiments compare encoders on."""

import os
import pathlib
import sys

from PIL import Image, ImageOps


def pictures():
    """Fifteen photographs from orbit and five variations, without losses, so that no decoder's rounding comes in."""
    folder = pathlib.Path("target/experiments/encoders/pictures")
    folder.mkdir(parents=True, exist_ok=True)
    data = pathlib.Path(os.environ.get("LOCDIFF_DATA") or sys.exit("set LOCDIFF_DATA to the data folder, for its photographs"))
    originals = sorted(path for path in (data / "astronaut").iterdir() if path.suffix.lower() in (".jpg", ".jpeg", ".png"))
    paths = []
    for number in range(20):
        path = folder / f"{number:02}.png"
        if not path.exists():
            picture = Image.open(originals[number % len(originals)]).convert("RGB")
            if number >= len(originals):
                # Wide, tall, tiny, mirrored, grey.
                picture = [
                    lambda p: p.crop((0, 200, 1024, 700)), lambda p: p.crop((300, 0, 700, 1024)), lambda p: p.resize((150, 190)),
                    ImageOps.mirror, lambda p: p.convert("L").convert("RGB"),
                ][number - len(originals)](picture)
            picture.save(path)
        paths.append(path)
    return paths
