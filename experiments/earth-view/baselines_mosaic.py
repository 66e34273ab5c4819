"""NASA's Blue Marble as true-scale patches with flat sea, for baselines.py.

Plane coordinates are azimuthal equidistant about a center: x to the east, y to the SOUTH, in km, so that they turn the same way as pixels do.
"""
import os
import pathlib
import sqlite3

import cv2
import numpy as np

EARTH_RADIUS_KM = 6371.0088
ZOOM, TILE = 7, 256
SIDE = TILE * 2**ZOOM
# Mosaic rows that are loaded: latitudes to about 76 degrees.
FIRST_TILE, LAST_TILE = 21, 106
SEA_BGR = (38, 20, 8)


def data():
    folder = os.environ.get("LOCDIFF_DATA")
    if not folder:
        raise SystemExit("LOCDIFF_DATA is not set: it names the folder with earth/ and realviews/")
    return pathlib.Path(folder)


def distance_km(a, b):
    """Great-circle distance of places given as (latitude, longitude) in degrees; broadcasts."""
    (p, q), (r, s) = np.radians(np.moveaxis(np.asarray(a, float), -1, 0)), np.radians(np.moveaxis(np.asarray(b, float), -1, 0))
    h = np.sin((r - p) / 2) ** 2 + np.cos(p) * np.cos(r) * np.sin((s - q) / 2) ** 2
    return 2 * EARTH_RADIUS_KM * np.arcsin(np.sqrt(np.clip(h, 0, 1)))


def to_place(latitude, longitude, x, y):
    """The places at plane coordinates (x, y) about a center. Broadcasts; degrees."""
    p, c = np.radians(latitude), np.hypot(x, y) / EARTH_RADIUS_KM
    bearing = np.arctan2(x, -y)
    q = np.arcsin(np.clip(np.sin(p) * np.cos(c) + np.cos(p) * np.sin(c) * np.cos(bearing), -1, 1))
    east = np.arctan2(np.sin(bearing) * np.sin(c) * np.cos(p), np.cos(c) - np.sin(p) * np.sin(q))
    return np.degrees(q), (longitude + np.degrees(east) + 180) % 360 - 180


def to_plane(latitude, longitude, latitudes, longitudes):
    """Plane coordinates of places about a center."""
    p, q, east = np.radians(latitude), np.radians(latitudes), np.radians(longitudes - longitude)
    cosine = np.sin(p) * np.sin(q) + np.cos(p) * np.cos(q) * np.cos(east)
    c = np.arccos(np.clip(cosine, -1, 1))
    k = EARTH_RADIUS_KM * np.where(c < 1e-9, 1, c / np.maximum(np.sin(c), 1e-9))
    return k * np.cos(q) * np.sin(east), -k * (np.cos(p) * np.sin(q) - np.sin(p) * np.cos(q) * np.cos(east))


def rows(stride_km, limit):
    """Centers of a grid of the Earth: rows of latitude, with places `stride_km` apart, to `limit` degrees north and south."""
    step = np.degrees(stride_km / EARTH_RADIUS_KM)
    count = int(np.ceil(2 * limit / step))
    for latitude in -limit + (np.arange(count) + 0.5) * 2 * limit / count:
        n = int(np.ceil(360 * np.cos(np.radians(latitude)) / step))
        for longitude in -180 + (np.arange(n) + 0.5) * 360 / n:
            yield latitude, longitude, limit / count, 180 / n


class Mosaic:
    """All of the mosaic in memory (about 2.9 GB), or with `around`, a list of places, only the tiles near them."""

    def __init__(self, around=None):
        from global_land_mask import globe

        self.land = globe.is_land
        store = sqlite3.connect(f"file:{data() / 'earth' / 'blue-marble-z7.mbtiles'}?mode=ro", uri=True)
        side = 2**ZOOM
        picture = np.zeros(((LAST_TILE - FIRST_TILE + 1) * TILE, SIDE, 3), np.uint8)
        for row in range(FIRST_TILE, LAST_TILE + 1):
            for column in range(side):
                if around is not None and not any(abs(column - (o + 180) / 360 * side) < 4 and abs(row - mercator(a) * side) < 4 for a, o in around):
                    continue
                tile, = store.execute("SELECT tile_data FROM tiles WHERE zoom_level=? AND tile_column=? AND tile_row=?", (ZOOM, column, side - 1 - row)).fetchone()
                y, x = (row - FIRST_TILE) * TILE, column * TILE
                picture[y : y + TILE, x : x + TILE] = cv2.imdecode(np.frombuffer(tile, np.uint8), cv2.IMREAD_COLOR)
        self.levels = [picture]
        while len(self.levels) < 5:
            last = self.levels[-1]
            self.levels.append(cv2.resize(last, (last.shape[1] // 2, last.shape[0] // 2), interpolation=cv2.INTER_AREA))

    def patch(self, latitude, longitude, pixels, km_per_pixel):
        """A north-up square patch (BGR), its land mask, and the share of land."""
        axis = (np.arange(pixels) - (pixels - 1) / 2) * km_per_pixel
        x, y = np.meshgrid(axis, axis)
        latitudes, longitudes = to_place(latitude, longitude, x, y)
        latitudes = np.clip(latitudes, -89.9, 89.9)
        land = self.land(latitudes, np.clip(longitudes, -180, 179.9999))
        share = land.mean()
        if share == 0:
            return None, land, share
        # The pyramid's level with the coarsest pixel that is not coarser than the patch's.
        finest = 2 * np.pi * EARTH_RADIUS_KM / SIDE * np.cos(np.radians(min(abs(latitude), 80)))
        level = int(np.clip(np.floor(np.log2(km_per_pixel / finest)), 0, len(self.levels) - 1))
        picture, scale = self.levels[level], SIDE / 2**level
        u = ((longitudes - longitude + 180) % 360 - 180 + longitude + 180) / 360 * scale - 0.5
        v = mercator(latitudes) * scale - FIRST_TILE * TILE / 2**level - 0.5
        u0, v0 = int(np.floor(u.min())) - 1, int(np.clip(np.floor(v.min()) - 1, 0, len(picture) - 2))
        v1 = int(np.clip(np.ceil(v.max()) + 2, v0 + 2, len(picture)))
        columns = np.arange(u0, int(np.ceil(u.max())) + 2) % picture.shape[1]
        part = picture[v0:v1][:, columns]
        out = cv2.remap(part, (u - u0).astype(np.float32), (v - v0).astype(np.float32), cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        # Sea becomes flat; the edge is softened as a picture's own would be.
        weight = cv2.GaussianBlur(land.astype(np.float32), (0, 0), 0.6)[..., None]
        return (out * weight + np.array(SEA_BGR, np.float32) * (1 - weight) + 0.5).astype(np.uint8), land, share


def mercator(latitude):
    """Rows of the map as a share of its height, from the north."""
    return 0.5 - np.arcsinh(np.tan(np.radians(latitude))) / (2 * np.pi)
