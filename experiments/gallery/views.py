"""Views of the Earth with known places, cut from tiles: trips/ (2,000), other-trips/ (300), last-summer/ (50), each with a manifest.csv, and new.jpg.

A view of other-trips is 0 to 20 km from one of trips (four of five) or at a place of its own; all are a little darker or lighter, and
slightly zoomed. Arguments: the MBTiles file, the folder."""

import csv
import io
import math
import pathlib
import random
import sqlite3
import sys

from PIL import Image, ImageEnhance

ZOOM, SIDE = 7, 192
tiles = sqlite3.connect(sys.argv[1])
folder = pathlib.Path(sys.argv[2])
random.seed(27)
kept = {}


def tile(column, row):
    if (column, row) not in kept:
        data = tiles.execute("SELECT tile_data FROM tiles WHERE zoom_level=? AND tile_column=? AND tile_row=?", (ZOOM, column, 2**ZOOM - 1 - row)).fetchone()
        kept[column, row] = Image.open(io.BytesIO(data[0])).convert("RGB")
    return kept[column, row]


def view(latitude, longitude):
    """About 234 km · cos(latitude) wide."""
    side = int(SIDE * random.uniform(0.97, 1.03))
    scale = 256 * 2**ZOOM
    x = (longitude + 180) / 360 * scale - side / 2
    y = (1 - math.asinh(math.tan(math.radians(latitude))) / math.pi) / 2 * scale - side / 2
    picture = Image.new("RGB", (side, side))
    for column in range(int(x // 256), int((x + side) // 256) + 1):
        for row in range(int(y // 256), int((y + side) // 256) + 1):
            picture.paste(tile(column % 2**ZOOM, row), (round(256 * column - x), round(256 * row - y)))
    return ImageEnhance.Brightness(picture).enhance(random.uniform(0.85, 1.15))


def is_land(picture):
    """Bathymetry is painted blue."""
    red, green, blue = picture.resize((8, 8)).split()
    return sum(b > 1.25 * r for r, b in zip(red.tobytes(), blue.tobytes())) < 32


def anywhere():
    while True:
        place = math.degrees(math.asin(random.uniform(-0.8, 0.85))), random.uniform(-170, 170)
        if is_land(view(*place)):
            return place


def near(place):
    km, bearing = random.uniform(0, 20), random.uniform(0, 2 * math.pi)
    return place[0] + km / 111.2 * math.cos(bearing), place[1] + km / 111.2 * math.sin(bearing) / math.cos(math.radians(place[0]))


def write(name, places):
    (folder / name).mkdir()
    with open(folder / name / "manifest.csv", "w") as file:
        rows = csv.writer(file)
        rows.writerow(["path", "latitude", "longitude"])
        for number, place in enumerate(places):
            file_name = f"{name}-{number:04}.jpg"
            view(*place).save(folder / name / file_name, quality=90)
            rows.writerow([file_name, f"{place[0]:.5f}", f"{place[1]:.5f}"])


trips = [anywhere() for _ in range(2000)]
write("trips", trips)
write("other-trips", [near(random.choice(trips)) if k % 5 else anywhere() for k in range(300)])
write("last-summer", [anywhere() for _ in range(50)])
new = near(trips[777])
view(*new).save(folder / "new.jpg", quality=90)
print(f"new.jpg was cut at {new[0]:.4f},{new[1]:.4f}")
