"""What `locdiff tag` writes, read back by exiftool (Debian: libimage-exiftool-perl): sidecars for every format, then Exif in JPEG and PNG files."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any, Callable

# By hand, for every third picture without GPS; the others are accepted.
PLACES = [(48.8583701, 2.2944813), (-33.8567844, 151.2152967), (0.0000123, -179.9999), (-90.0, 0.0)]
WRITTEN = {"GPSVersionID", "GPSLatitude", "GPSLatitudeRef", "GPSLongitude", "GPSLongitudeRef"}
WRITTEN |= {"GPSMapDatum", "GPSHPositioningError", "GPSProcessingMethod", "GPSPosition"}
# What a longer file changes by itself, and where exiftool found things.
INCIDENTAL = {"SourceFile", "FileSize", "FileModifyDate", "FileAccessDate", "FileInodeChangeDate", "ExifByteOrder", "Warning"}
EXACT_DEGREES = 1e-7

Row = dict[str, Any]


def tags(path: Path) -> Row:
    """All tags of a file, numbers as numbers, by group and name; and a digest of the image data."""
    command = ["exiftool", "-json", "-n", "-G1", "-a", "-u", "-api", "requesttags=imagedatahash", "-All", str(path)]
    return json.loads(subprocess.run(command, capture_output=True, text=True).stdout)[0]


def others(row: Row) -> Row:
    return {key: value for key, value in row.items() if key.rpartition(":")[2] not in WRITTEN | INCIDENTAL}


def is_written(row: Row, group: str, picture: Row) -> bool:
    """Whether the place in these tags is that of the library, and says where it is from."""
    found = {key.rpartition(":")[2]: value for key, value in row.items() if key.startswith(group + ":")}
    signs = {"N": 1, "S": -1, "E": 1, "W": -1}
    wanted = picture["pin"] or picture["place"]
    for name, degrees in zip(("GPSLatitude", "GPSLongitude"), wanted):
        # In Exif the sign is a tag of its own.
        value = float(found.get(name, "nan")) * signs.get(found.get(name + "Ref"), 1)
        if not abs((value - degrees + 180) % 360 - 180) < EXACT_DEGREES:
            return False
    method = str(found.get("GPSProcessingMethod"))
    if picture["pin"]:
        return "by hand" in method
    error_m = float(found.get("GPSHPositioningError", "nan"))
    return "geoclip" in method and abs(error_m / (1000 * picture["radius_68_km"]) - 1) < 1e-3


def read_back(root: Path, folder: Path, archive: Any, review: Callable[..., list[Row]]) -> dict[str, object]:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(root / "parity/photo/files", folder)
    shutil.copy(folder / "rgb.tif", folder / "raw.dng")
    subprocess.run(["exiftool", "-q", "-overwrite_original", "-DNGVersion=1.4.0.0", str(folder / "raw.dng")], check=True)
    archive.run("scan", str(folder), "--model", "geoclip", "--library", str(archive.path))

    def decided(pictures: list[Row]) -> list[Row]:
        wanted = []
        for number, picture in enumerate(p for p in pictures if p["gps"] is None and p["kind"] == "photo"):
            if picture["place"] is None or number % 3 == 0:
                latitude, longitude = PLACES[number % len(PLACES)]
                wanted.append({"id": picture["id"], "decision": "moved", "latitude": latitude, "longitude": longitude})
            else:
                wanted.append({"id": picture["id"], "decision": "accepted"})
        return wanted

    review(archive, decided)
    pictures = {p["path"]: p for p in review(archive, lambda pictures: []) if p["decision"]}
    counts = {"sidecars": 0, "in_place": 0}
    formats: set[str] = set()
    problems = []
    for how, options in (("sidecars", []), ("in_place", ["--in-place"])):
        before = {path: tags(path) for path in folder.iterdir()}
        # Other formats than JPEG and PNG cannot be written in place: exit code 1.
        written = archive.run("tag", str(archive.path), *options, codes=(0,) if how == "sidecars" else (1,))
        for record in written["files"]:
            path = Path(record["path"])
            row = tags(path)
            picture = pictures[str(path).removesuffix(".xmp")]
            is_new = path not in before
            untouched = is_new or others(row) == others(before[path])
            warned = not is_new and "ExifTool:Warning" in row and "ExifTool:Warning" not in before[path]
            if is_written(row, "XMP-exif" if is_new else "GPS", picture) and untouched and not warned:
                counts[how] += 1
                formats.add(f"{how} {Path(picture['path']).suffix}")
            else:
                problems.append(f"{how} {path.name}: {row}")
        archive.run("tag", str(archive.path), "--undo")
        after = {path: tags(path) for path in folder.iterdir()}
        assert {path: others(row) for path, row in before.items()} == {path: others(row) for path, row in after.items()}
    return {"read_back": counts, "read_back_formats": sorted(formats), "read_back_wrong": problems}
