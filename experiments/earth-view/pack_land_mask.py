"""Packs global-land-mask's array (933 MB when unpacked) into runs of a few MB. Standard library only.

    pack_land_mask.py globe_combined_mask_compressed.npz land-mask.runs

Layout, little endian: the magic "LANDRUN1", rows and columns as u32, then for each row from
north to south a u16 count and that many u16 columns at which land and sea change places. A row
begins as sea at 180 degrees west.
"""

import ast
import struct
import sys
import zipfile

source, target = sys.argv[1:]
with zipfile.ZipFile(source) as archive:
    with archive.open("lat.npy") as file:
        header = file.read(10)
        file.read(struct.unpack("<H", header[8:10])[0])
        first, second = struct.unpack("<2d", file.read(16))
        if first < second:
            sys.exit(f"latitudes run from {first} northward; expected from north to south")
    with archive.open("mask.npy") as file, open(target, "wb") as out:
        header = file.read(10)
        description = ast.literal_eval(file.read(struct.unpack("<H", header[8:10])[0]).decode())
        rows, columns = description["shape"]
        if description["descr"] != "|b1" or description["fortran_order"]:
            sys.exit(f"expected an array of bools by rows, found {description}")
        out.write(b"LANDRUN1" + struct.pack("<2I", rows, columns))
        for _ in range(rows):
            row = file.read(columns)  # 1 is sea
            changes, at, wanted = [], 0, b"\0"
            while (at := row.find(wanted, at)) >= 0:
                changes.append(at)
                wanted = b"\1" if wanted == b"\0" else b"\0"
            out.write(struct.pack(f"<{1 + len(changes)}H", len(changes), *changes))
