"""Draws the figures from the arrays that the program `figures` wrote: plot.py ARRAYS PNGS"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

arrays, pictures = Path(sys.argv[1]), Path(sys.argv[2])
plt.rcParams.update({"font.size": 10, "axes.titlesize": 10, "figure.dpi": 110, "savefig.dpi": 110})
# Colour-blind safe (Okabe and Ito).
BLUE, ORANGE = "#0072B2", "#D55E00"


def spatial_resolution():
    profiles = np.load(arrays / "resolution.npy")
    degrees = np.load(arrays / "resolution_degrees.npy").astype(int)
    half_width_km = 2000
    axis = np.linspace(-half_width_km, half_width_km, 500)
    radius = np.hypot(*np.meshgrid(axis, axis))
    figure, panels = plt.subplots(2, len(degrees), figsize=(15, 5.6), layout="constrained")
    for column, (degree, (distance, value)) in enumerate(zip(degrees, profiles)):
        # Above: the band-limited delta function itself, the same window for all.
        panel = panels[0, column]
        picture = np.interp(radius, distance, value / value[0])
        linear = panel.imshow(
            picture, extent=(-half_width_km, half_width_km) * 2, cmap="cividis", vmin=-0.2, vmax=1
        )
        panel.set_title(f"L = {degree}, {(degree + 1) ** 2:,} numbers\nπR/L = {20015 / degree:,.0f} km")
        # Below: its density exp F, in a window that fits it.
        sums = sum(l * (l + 1) * (2 * l + 1) for l in range(degree + 1))
        spread_km = 6371.0088 / np.sqrt(sums / (8 * np.pi))
        window = 4 * spread_km
        axis_near = np.linspace(-window, window, 300)
        radius_near = np.hypot(*np.meshgrid(axis_near, axis_near))
        density = np.exp(np.interp(radius_near, distance, value) - value[0])
        panel = panels[1, column]
        near = panel.imshow(density, extent=(-window, window) * 2, cmap="cividis", vmin=0, vmax=1)
        panel.set_title(f"σ = {spread_km:,.1f} km")
        for panel in panels[:, column]:
            panel.tick_params(labelsize=8)
            panel.locator_params(nbins=3)
            panel.set_xlabel("km")
    panels[0, 0].set_ylabel("F / F(place)\nkm")
    panels[1, 0].set_ylabel("exp(F − F(place))\nkm")
    figure.colorbar(linear, ax=panels[0], shrink=0.8)
    figure.colorbar(near, ax=panels[1], shrink=0.8)
    figure.suptitle("What an encoding of max degree L can tell apart (the paper stops at 47)")
    figure.savefig(pictures / "spatial-resolution.png")


def largest_coefficients():
    paper, ours = np.load(arrays / "largest.npy")
    dimension = np.arange(len(ours)) + 1
    figure, panel = plt.subplots(figsize=(9, 4.6), layout="constrained")
    panel.semilogy(dimension, paper, lw=0.5, color=ORANGE, label="the paper's closed formula, in f64")
    panel.semilogy(dimension, ours, lw=0.5, color=BLUE, label="normalised recurrence (ours)")
    degree = np.floor(np.sqrt(dimension - 1))
    panel.semilogy(dimension, np.sqrt((2 * degree + 1) / (4 * np.pi)), "k--", lw=1, label="bound √((2l+1)/4π)")
    for limit in (15, 23, 31, 47):
        panel.axvline((limit + 1) ** 2, color="grey", lw=0.6, ls=":")
        panel.text((limit + 1) ** 2, 0.13, f" L = {limit}", fontsize=8, color="grey")
    panel.set_xlim(1, len(ours))
    panel.set_ylim(0.1, None)
    panel.set_xlabel("dimension l² + l + m + 1")
    panel.set_ylabel("largest |coefficient| over places")
    panel.set_title("The ceiling at L = 47 is not real: the formula breaks, not the encoding")
    panel.legend(loc="upper left")
    figure.savefig(pictures / "largest-coefficients.png")


spatial_resolution()
largest_coefficients()
