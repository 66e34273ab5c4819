#!/usr/bin/env python3
"""Makes LOCDIFF_DATA/earth/{blue,black}-marble-z7.mbtiles from NASA's public tile service (GIBS), 16,384 tiles each.

Usage: fetch_tiles.py FOLDER [SERVICE]. Goes on where it was stopped. Addresses of tiles come from the service's own description (WMTS).
Our machines can't reach the service: what was tested is this script against a small copy of the protocol.
"""
import concurrent.futures
import pathlib
import sqlite3
import sys
import time
import urllib.request
import xml.etree.ElementTree

SERVICE = "https://gibs.earthdata.nasa.gov/wmts/epsg3857/best/1.0.0/WMTSCapabilities.xml"
LAYERS = {"blue-marble-z7": "BlueMarble_ShadedRelief_Bathymetry", "black-marble-z7": "VIIRS_Black_Marble"}
ZOOM = 7
SPACES = {"w": "http://www.opengis.net/wmts/1.0", "o": "http://www.opengis.net/ows/1.1"}


def get(address):
    for attempt in range(5):
        try:
            with urllib.request.urlopen(address, timeout=60) as answer:
                return answer.read()
        except OSError as error:
            if attempt == 4:
                raise SystemExit(f"cannot get {address}: {error}")
            time.sleep(2**attempt)


def template(description, wanted):
    """The address of a layer's tiles, with {TileMatrix}, {TileRow} and {TileCol} left to fill in."""
    for layer in description.iterfind(".//w:Contents/w:Layer", SPACES):
        if layer.findtext("o:Identifier", namespaces=SPACES) != wanted:
            continue
        address = layer.find("w:ResourceURL[@resourceType='tile']", SPACES).get("template")
        matrix = layer.findtext(".//w:TileMatrixSet", namespaces=SPACES)
        day = layer.findtext("w:Dimension/w:Default", default="default", namespaces=SPACES)
        return address.replace("{TileMatrixSet}", matrix).replace("{Time}", day).replace("{Style}", "default")
    raise SystemExit(f"the service has no layer {wanted}")


def main():
    if len(sys.argv) not in (2, 3):
        raise SystemExit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    description = xml.etree.ElementTree.fromstring(get(sys.argv[2] if len(sys.argv) == 3 else SERVICE))
    side = 2**ZOOM
    for name, layer in LAYERS.items():
        address = template(description, layer)
        store = sqlite3.connect(folder / f"{name}.mbtiles")
        store.execute("CREATE TABLE IF NOT EXISTS metadata (name TEXT, value TEXT)")
        store.execute("CREATE TABLE IF NOT EXISTS tiles (zoom_level INTEGER, tile_column INTEGER, tile_row INTEGER, "
                      "tile_data BLOB, PRIMARY KEY (zoom_level, tile_column, tile_row))")
        done = set(store.execute("SELECT tile_column, tile_row FROM tiles"))
        # MBTiles counts rows from the south, the service from the north.
        wanted = [(x, y) for x in range(side) for y in range(side) if (x, side - 1 - y) not in done]

        def tile(place):
            x, y = place
            filled = address.replace("{TileMatrix}", str(ZOOM)).replace("{TileRow}", str(y)).replace("{TileCol}", str(x))
            return x, side - 1 - y, get(filled)

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            for count, (x, row, data) in enumerate(pool.map(tile, wanted), 1):
                store.execute("INSERT INTO tiles VALUES (?, ?, ?, ?)", (ZOOM, x, row, data))
                if count % 256 == 0 or count == len(wanted):
                    store.commit()
                    print(f"{name}: {len(done) + count} of {side * side}", file=sys.stderr)
        store.close()


main()
