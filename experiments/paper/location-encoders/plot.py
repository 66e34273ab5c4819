"""The heat maps of the paper's first figure: distances decoded on a plane through an encoding."""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import LogNorm

heat = np.load(sys.argv[1])
names = ["SHDD (L = 23), continuous decoder", "Sphere2Vec, learned decoder", "rbf, learned decoder"]
figure, axes = plt.subplots(1, 3, figsize=(13.5, 4.6), constrained_layout=True, sharey=True)
for axis, name, pixels in zip(axes, names, heat):
    picture = axis.imshow(
        np.clip(pixels, 1, 20000), norm=LogNorm(1, 20000), extent=[-8, 8, -8, 8], origin="lower", cmap="viridis"
    )
    circle = plt.Circle((0, 0), 2.4, fill=False, color="white", linestyle="--", linewidth=1)
    axis.add_patch(circle)
    axis.plot([0], [0], marker="*", color="gold", markersize=14, markeredgecolor="black")
    axis.set_title(name)
    axis.set_xlabel("along one random direction")
axes[0].set_ylabel("along another")
bar = figure.colorbar(picture, ax=axes, shrink=0.9)
bar.set_label("decoded place to the star, km")
figure.suptitle("How far does a decoded place jump when its encoding is moved? (dashed: length of noise of variance 0.01)")
figure.savefig(sys.argv[2], dpi=90)
