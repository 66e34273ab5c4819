"""Compares the places and times that `locdiff scan` reads with those that exiftool (Debian: libimage-exiftool-perl) reads.

    pip download --no-deps --no-binary :all: geovisio==2.15.1 geopic_tag_reader==0.4.0 --dest fixtures     # MIT; then unpack both
    python3 parity/tags/read.py target/debug/locdiff fixtures

A place is exiftool's Composite:GPSLatitude and GPSLongitude, which need both numbers and both letters. A place that the camera calls void (GPSStatus V) is
none: `locdiff` does not take it for a measurement. Prints one line of JSON with the counts, and exits with 1 if anything differs.
"""

import datetime
import json
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

EXACT_DEGREES = 1e-9
TAGS = ["-Composite:GPSLatitude", "-Composite:GPSLongitude", "-GPS:GPSStatus", "-ExifIFD:DateTimeOriginal", "-ExifIFD:OffsetTimeOriginal", "-ExifIFD:SubSecTimeOriginal"]


def seconds(row):
    """When it was taken, in UTC if the zone is known; none if it is no time."""
    text = row.get("DateTimeOriginal")
    if text is None:
        return None
    try:
        zone = datetime.datetime.strptime(row.get("OffsetTimeOriginal", "+00:00"), "%z").tzinfo
        time = datetime.datetime.strptime(text, "%Y:%m:%d %H:%M:%S").replace(tzinfo=zone)
    except ValueError:
        return None
    return time.timestamp() + float(f"0.{row.get('SubSecTimeOriginal', 0)}")


def main():
    program, folder = sys.argv[1], Path(sys.argv[2]).resolve()
    with tempfile.TemporaryDirectory() as scratch:
        library = Path(scratch) / "library.sqlite"
        subprocess.run([program, "scan", str(folder), "--library", str(library), "--no-predict"], check=True)
        rows = sqlite3.connect(library).execute("SELECT path, latitude, longitude, time_s FROM files").fetchall()
    read = subprocess.run(["exiftool", "-json", "-n", *TAGS, *[path for path, *_ in rows]], capture_output=True, text=True)
    expected = {row["SourceFile"]: row for row in json.loads(read.stdout)}
    places, void, times, wrong = 0, 0, 0, []
    for path, latitude, longitude, time_s in rows:
        row = expected[path]
        # exiftool prints nothing for 0/0.
        place = (row.get("GPSLatitude") or None, row.get("GPSLongitude") or None)
        found = (latitude, longitude)
        is_void = None not in place and row.get("GPSStatus") == "V"
        void += is_void
        known = None not in place and not is_void
        places += known
        near = known and latitude is not None and all(abs(a - b) < EXACT_DEGREES for a, b in zip(place, found))
        if not near and (known or latitude is not None):
            wrong.append((path, "place", place, found))
        time = seconds(row)
        times += time is not None
        if (time is None) != (time_s is None) or time is not None and abs(time - time_s) > 1e-3:
            wrong.append((path, "time", time, time_s))
    for what in wrong:
        print(*what, file=sys.stderr)
    print(json.dumps({"files": len(rows), "with_place": places, "void": void, "with_time": times, "different": len(wrong)}))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
