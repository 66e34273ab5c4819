"""Times scipy's vectorised harmonics: one line of seconds per line on stdin."""

import sys
import time

import numpy as np
from scipy.special import sph_harm_y_all

max_degree, places = int(sys.argv[1]), int(sys.argv[2])
rng = np.random.default_rng(0)
theta = np.arccos(rng.uniform(-1, 1, places))
phi = rng.uniform(-np.pi, np.pi, places)
sph_harm_y_all(max_degree, max_degree, theta, phi)
for _ in sys.stdin:
    began = time.perf_counter()
    sph_harm_y_all(max_degree, max_degree, theta, phi)
    print(time.perf_counter() - began, flush=True)
