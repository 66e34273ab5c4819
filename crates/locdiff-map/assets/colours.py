"""Writes src/colour_table.rs: inferno, by Nathaniel Smith and Stéfan van der Walt (CC0), thinned out.

Its lightness rises evenly in CAM02-UCS, so equal steps of the scale look equal, also to people with
any colour blindness and in grey. Needs PyPI's `matplotlib` (3.11.2 made the committed file), which
carries the table. Run once; the result is committed.
"""

from pathlib import Path

from matplotlib import colormaps

COLOURS = 65

rows = [tuple(round(255 * part) for part in colormaps["inferno"](i / (COLOURS - 1))[:3]) for i in range(COLOURS)]
table = "\n".join(f"    [{r}, {g}, {b}]," for r, g, b in rows)
target = Path(__file__).parent.parent / "src" / "colour_table.rs"
target.write_text(
    f"""//! Made by `assets/colours.py`, which has its source.

/// The colour map inferno at equal steps, from dark to light.
pub(crate) const INFERNO: [[u8; 3]; {COLOURS}] = [
{table}
];
"""
)
