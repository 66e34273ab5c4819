"""Times scipy's vectorised harmonics: seconds per place, one line per line on stdin.

Large batches spend much of their time on fresh memory, small ones on calls, so several sizes are
tried and the best one counts.
"""

import sys
import time

import numpy as np
from scipy.special import sph_harm_y_all

max_degree = int(sys.argv[1])
sizes = (10, 50, 200, 2000)
rng = np.random.default_rng(0)
theta = np.arccos(rng.uniform(-1, 1, max(sizes)))
phi = rng.uniform(-np.pi, np.pi, max(sizes))


def seconds_per_place(size):
    began = time.perf_counter()
    sph_harm_y_all(max_degree, max_degree, theta[:size], phi[:size])
    return (time.perf_counter() - began) / size


for _ in sys.stdin:
    print(min(seconds_per_place(size) for size in sizes for _ in range(3)), flush=True)
