"""Asks exiftool (Debian: libimage-exiftool-perl) to read what locdiff-archive writes.

    cargo build -p locdiff-archive --example place
    python3 parity/tags/check.py target/debug/examples/place parity/photo/files

For every picture in the folder, copied to a temporary one:
- a new sidecar, and one that exiftool made before with other tags in it, read back as sidecars;
- JPEG and PNG: Exif in the file. Every other tag and the image data must be as before, and exiftool must find
  no new error or warning.

Prints one line of JSON with the counts, and exits with 1 if anything differs.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PLACES = [(48.8583701, 2.2944813), (-33.8567844, 151.2152967), (0.0000123, -179.9999), (-90.0, 0.0)]
WRITTEN = {
    "GPSVersionID", "GPSLatitude", "GPSLatitudeRef", "GPSLongitude", "GPSLongitudeRef",
    "GPSMapDatum", "GPSHPositioningError", "GPSProcessingMethod", "GPSPosition",
}
# What a longer file changes by itself, and where exiftool found things.
INCIDENTAL = {"SourceFile", "FileSize", "FileModifyDate", "FileAccessDate", "FileInodeChangeDate", "ExifByteOrder", "Warning"}
EXACT_DEGREES = 1e-7


def tags(path):
    """All tags of a file, as numbers where they are, by group and name."""
    command = ["exiftool", "-json", "-n", "-G1", "-a", "-u", "-ImageDataMD5", "-All", str(path)]
    read = subprocess.run(command, capture_output=True, text=True)
    rows = json.loads(read.stdout)[0]
    return {name: value for name, value in rows.items()}


def place(row, groups):
    found = {}
    for key, value in row.items():
        group, _, name = key.rpartition(":")
        if group in groups:
            found[name] = value
    return found


def near(found, latitude, longitude):
    signs = {"N": 1, "S": -1, "E": 1, "W": -1}
    got = []
    for name in ("GPSLatitude", "GPSLongitude"):
        value = float(found.get(name, "nan"))
        # In Exif the sign is a tag of its own.
        value *= signs.get(found.get(name + "Ref"), 1)
        got.append(value)
    turns = (got[1] - longitude + 180) % 360 - 180
    return abs(got[0] - latitude) < EXACT_DEGREES and abs(turns) < EXACT_DEGREES


def others(row):
    kept = {}
    for key, value in row.items():
        name = key.rpartition(":")[2]
        if name not in WRITTEN | INCIDENTAL:
            kept[key] = value
    return kept


def main():
    program, folder = sys.argv[1], Path(sys.argv[2])
    counts = {"sidecars": 0, "edited_sidecars": 0, "in_place": 0, "refused": 0}
    problems = []

    def run(how, path, latitude, longitude):
        return subprocess.run([program, how, str(path), str(latitude), str(longitude)], capture_output=True, text=True)

    files = sorted(path for path in folder.iterdir() if path.is_file())
    with tempfile.TemporaryDirectory() as temporary:
        for number, original in enumerate(files):
            latitude, longitude = PLACES[number % len(PLACES)]
            picture = Path(temporary) / original.name
            shutil.copy(original, picture)
            sidecar = Path(str(picture) + ".xmp")
            run("sidecar", picture, latitude, longitude)
            found = place(tags(sidecar), {"XMP-exif"})
            if near(found, latitude, longitude) and float(found["GPSHPositioningError"]) == 12340 and "earth-view" in found["GPSProcessingMethod"]:
                counts["sidecars"] += 1
            else:
                problems.append(f"{original.name}: sidecar {found}")
            sidecar.unlink()
            made = ["-XMP-dc:Title=Tïtle <&>", "-XMP:Rating=3", "-XMP-dc:Subject=a", "-XMP-dc:Subject=b", "-XMP-exif:GPSLatitude=1"]
            subprocess.run(["exiftool", "-q", *made, str(sidecar)], check=True)
            before = others(tags(sidecar))
            run("sidecar", picture, latitude, longitude)
            row = tags(sidecar)
            if near(place(row, {"XMP-exif"}), latitude, longitude) and others(row) == before:
                counts["edited_sidecars"] += 1
            else:
                problems.append(f"{original.name}: edited sidecar {row}")
            if picture.suffix not in {".jpg", ".png"}:
                continue
            before = tags(picture)
            if run("in-place", picture, latitude, longitude).returncode != 0:
                counts["refused"] += 1
                continue
            after = tags(picture)
            same = others(before) == others(after)
            warned = "ExifTool:Warning" in after and "ExifTool:Warning" not in before
            found = place(after, {"GPS"})
            if same and not warned and near(found, latitude, longitude) and float(found["GPSHPositioningError"]) == 12340:
                counts["in_place"] += 1
            else:
                lost = {k: v for k, v in others(before).items() if others(after).get(k) != v}
                new = {k: v for k, v in others(after).items() if others(before).get(k) != v}
                problems.append(f"{original.name}: in place {found} lost {lost} new {new} warned {warned}")
    print(json.dumps({"files": len(files), **counts, "problems": problems}))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
