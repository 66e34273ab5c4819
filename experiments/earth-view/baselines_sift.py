"""Baseline 1: SIFT keypoints of the mosaic in one index, votes for a place, then RANSAC. See baselines.py.

RootSIFT (Arandjelovic and Zisserman 2012). A match of two keypoints gives a whole similarity, so RANSAC tries every match once instead of random
pairs (Philbin et al. 2007), and refines the best ones to an affine map by least squares.
"""
import cv2
import faiss
import numpy as np

import baselines_mosaic as mosaic

KM_PER_PIXEL = 1.25  # SIFT doubles a picture first, and its octaves reach up to views of 2,500 km.
CORE_KM, MARGIN_KM, LIMIT = 1000, 100, 72
CONTRAST = 0.01
QUERY_PIXELS, QUERY_KEYPOINTS = 256, 1200
WIDTHS_KM = (100, 2500)
NEIGHBORS, CLUSTERS, PROBES, VOTE_POWER = 10, 1024, 16, 2
CELLS, LOCAL_RATIO = 30, 0.92
MAX_ANISOTROPY = 2.5


def root_sift(descriptors):
    """Square roots of the L1-normalized descriptors, as bytes."""
    share = descriptors / np.maximum(descriptors.sum(1, keepdims=True), 1e-9)
    return np.clip(np.sqrt(share) * 400 + 0.5, 0, 255).astype(np.uint8)


def keypoints(picture, mask=None, count=0):
    """[n, 4] x, y, diameter in pixels and angle in degrees (clockwise from the right); [n, 128] descriptors."""
    gray = cv2.cvtColor(picture, cv2.COLOR_BGR2GRAY)
    found, descriptors = cv2.SIFT_create(nfeatures=count, contrastThreshold=CONTRAST).detectAndCompute(gray, mask)
    if not found:
        return np.zeros((0, 4), np.float32), np.zeros((0, 128), np.uint8)
    return np.array([(*k.pt, k.size, k.angle) for k in found], np.float32), root_sift(descriptors)


class Reference:
    """The mosaic's keypoints: [n, 4] latitude, longitude, diameter in km, angle from the local east, clockwise; and their descriptors."""

    def __init__(self, frames, descriptors):
        self.frames, self.descriptors = frames, descriptors
        p, q = np.radians(frames[:, 0].astype(float)), np.radians(frames[:, 1].astype(float))
        self.units = np.stack([np.cos(p) * np.cos(q), np.cos(p) * np.sin(q), np.sin(p)], 1).astype(np.float32)

    @classmethod
    def build(cls, earth, wanted=lambda latitude, longitude: True, log=lambda text: None):
        pixels = int((CORE_KM + 2 * MARGIN_KM) / KM_PER_PIXEL)
        frames, descriptors = [], []
        for latitude, longitude, half_latitude, half_longitude in mosaic.rows(CORE_KM, LIMIT):
            if not wanted(latitude, longitude):
                continue
            patch, land, share = earth.patch(latitude, longitude, pixels, KM_PER_PIXEL)
            if share == 0:
                continue
            near = cv2.dilate(land.astype(np.uint8), np.ones((9, 9), np.uint8))
            found, description = keypoints(patch, near)
            if not len(found):
                continue
            x, y = (found[:, :2] - (pixels - 1) / 2).T * KM_PER_PIXEL
            a, o = mosaic.to_place(latitude, longitude, x, y)
            east = (o - longitude + 180) % 360 - 180
            # Up in the patch is north at its center only.
            angle = found[:, 3] - east * np.sin(np.radians(a))
            core = (np.abs(a - latitude) <= half_latitude) & (np.abs(east) <= half_longitude)
            frames.append(np.stack([a, o, found[:, 2] * KM_PER_PIXEL, angle], 1)[core].astype(np.float32))
            descriptors.append(description[core])
            log(f"latitude {latitude:.0f}, longitude {longitude:.0f}: {core.sum()} keypoints")
        return cls(np.concatenate(frames), np.concatenate(descriptors))

    def index(self, seed=0):
        """An inverted file with 8 bits per number."""
        quantizer = faiss.IndexFlatL2(128)
        self.search = faiss.IndexIVFScalarQuantizer(quantizer, 128, CLUSTERS, faiss.ScalarQuantizer.QT_8bit_direct, faiss.METRIC_L2)
        self.search.cp.niter = 8
        some = np.random.default_rng(seed).permutation(len(self.descriptors))[: 80 * CLUSTERS]
        self.search.train(self.descriptors[some].astype(np.float32))
        for start in range(0, len(self.descriptors), 100_000):
            self.search.add(self.descriptors[start : start + 100_000].astype(np.float32))
        self.search.nprobe = PROBES


def turn(x, y, degrees):
    """Clockwise, with y downward."""
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return c * x - s * y, s * x + c * y


def votes(reference, found, description, shape):
    """Cells by their votes: center, width in km, heading. Each vote is for where the whole picture would be."""
    distances, ids = reference.search.search(description.astype(np.float32), NEIGHBORS + 1)
    distances = np.sqrt(np.maximum(distances, 1))
    # The ratio test as a weight: how much nearer than the first neighbor that is left out.
    weight = np.maximum(1 - distances[:, :-1] / distances[:, -1:], 0) ** VOTE_POWER
    query, rank = np.nonzero((weight > 0) & (ids[:, :-1] >= 0))
    frame, weight, query_frame = reference.frames[ids[query, rank]], weight[query, rank], found[query]
    scale = frame[:, 2] / query_frame[:, 2]
    width = scale * shape[1]
    heading = (frame[:, 3] - query_frame[:, 3]) % 360
    x, y = turn((shape[1] / 2 - query_frame[:, 0]) * scale, (shape[0] / 2 - query_frame[:, 1]) * scale, heading)
    keep = (width >= WIDTHS_KM[0]) & (width <= WIDTHS_KM[1])
    latitude, longitude = mosaic.to_place(frame[:, 0].astype(float), frame[:, 1].astype(float), x, y)
    latitude, longitude, width, heading, weight, query = (v[keep] for v in (latitude, longitude, width, heading, weight, query))
    if not len(width):
        return []
    # Soft bins: widths by factors of 1.6, headings by 40 degrees, places by 0.4 widths; each vote goes into both neighbors of each axis.
    p, q = np.radians(latitude), np.radians(longitude)
    unit = np.stack([np.cos(p) * np.cos(q), np.cos(p) * np.sin(q), np.sin(p)], 1) * mosaic.EARTH_RADIUS_KM
    level = np.log(width / WIDTHS_KM[0]) / np.log(1.6)
    keys, owners = [], []
    for a in (0, 1):
        bin_width = np.floor(level).astype(np.int64) + a
        grid = 0.4 * WIDTHS_KM[0] * 1.6**bin_width
        for b in (0, 1):
            bin_heading = (np.floor(heading / 40).astype(np.int64) + b) % 9
            for c in range(8):
                cell = np.floor(unit / grid[:, None]).astype(np.int64) + [c & 1, c >> 1 & 1, c >> 2 & 1] + 512
                keys.append((((bin_width * 16 + bin_heading) * 1024 + cell[:, 0]) * 1024 + cell[:, 1]) * 1024 + cell[:, 2])
                owners.append(np.arange(len(width)))
    keys, owners = np.concatenate(keys), np.concatenate(owners)
    # A keypoint of the picture votes once for each cell.
    _, once = np.unique(keys * 4096 + query[owners], return_index=True)
    keys, owners = keys[once], owners[once]
    cells, inverse = np.unique(keys, return_inverse=True)
    sums = np.bincount(inverse, weight[owners])
    # Wide cells collect more votes by chance: standard deviations above the mean of the cells of the same width.
    for level in np.unique(cells >> 34):
        same = cells >> 34 == level
        sums[same] = (sums[same] - sums[same].mean()) / max(sums[same].std(), 1e-9)
    order, chosen = np.argsort(-sums)[:2000], []
    by_cell = np.argsort(inverse, kind="stable")
    first = np.searchsorted(inverse[by_cell], np.arange(len(cells) + 1))
    for cell in order:
        members = owners[by_cell[first[cell] : first[cell + 1]]]
        w = weight[members]
        center = (unit[members] * w[:, None]).sum(0)
        center /= np.linalg.norm(center)
        place = np.degrees([np.arcsin(center[2]), np.arctan2(center[1], center[0])])
        wide = np.exp((np.log(width[members]) * w).sum() / w.sum())
        angle = np.degrees(np.angle((np.exp(1j * np.radians(heading[members])) * w).sum())) % 360
        if any(mosaic.distance_km(place, c[0]) < 0.3 * wide and abs(np.log(wide / c[1])) < 0.4 and turned(angle, c[2]) < 40 for c in chosen):
            continue
        chosen.append((place, wide, angle, sums[cell]))
        if len(chosen) == CELLS:
            break
    return chosen


def turned(a, b):
    return np.abs((a - b + 180) % 360 - 180)


def fit(source, target, affine):
    """Least squares: the 2 by 3 matrix from points to points."""
    if affine:
        left = np.concatenate([source, np.ones((len(source), 1))], 1)
        return np.linalg.lstsq(left, target, rcond=None)[0].T
    z, w = source[:, 0] + 1j * source[:, 1], target[:, 0] + 1j * target[:, 1]
    zc, wc = z.mean(), w.mean()
    a = (np.conj(z - zc) * (w - wc)).sum() / max((np.abs(z - zc) ** 2).sum(), 1e-9)
    b = wc - a * zc
    return np.array([[a.real, -a.imag, b.real], [a.imag, a.real, b.imag]])


def verify(reference, found, description, shape, cell):
    """RANSAC in a cell: the number of inliers, the picture's center, its width in km."""
    place, wide, angle, _ = cell
    radius = 0.9 * wide * max(1, shape[0] / shape[1])
    center = mosaic_unit(place)
    near = np.nonzero(reference.units @ center > np.cos(min(radius / mosaic.EARTH_RADIUS_KM, 1.5)))[0]
    # Keypoints that would be too small or too large in the picture.
    pixels = reference.frames[near, 2] / (wide / shape[1])
    near = near[(pixels > found[:, 2].min() / 1.7) & (pixels < found[:, 2].max() * 1.7)]
    if len(near) < 8 or len(found) < 4:
        return 0, place, wide
    a, b = description.astype(np.float32), reference.descriptors[near].astype(np.float32)
    squares, two = faiss.knn(a, b, 2)
    value, best = np.sqrt(np.maximum(squares, 1)), two[:, 0]
    query = np.nonzero(value[:, 0] < LOCAL_RATIO * value[:, 1])[0]
    frame, query_frame = reference.frames[near[best[query]]].astype(float), found[query].astype(float)
    scale, heading = frame[:, 2] / query_frame[:, 2], (frame[:, 3] - query_frame[:, 3]) % 360
    keep = (np.abs(np.log(scale * shape[1] / wide)) < np.log(2.2)) & (turned(heading, angle) < 60)
    frame, query_frame, scale, heading, target_id = frame[keep], query_frame[keep], scale[keep], heading[keep], best[query[keep]]
    if len(frame) < 3:
        return 0, place, wide
    target = np.stack(mosaic.to_plane(*place, frame[:, 0], frame[:, 1]), 1)
    source = query_frame[:, :2] - [shape[1] / 2, shape[0] / 2]
    # [hypothesis, match]: where each match's own similarity puts the others.
    dx, dy = source[None, :, 0] - source[:, None, 0], source[None, :, 1] - source[:, None, 1]
    x, y = turn(dx * scale[:, None], dy * scale[:, None], heading[:, None])
    off = np.hypot(x + target[:, None, 0] - target[None, :, 0], y + target[:, None, 1] - target[None, :, 1])
    agree = off < 0.08 * wide
    agree &= (np.abs(np.log(scale[:, None] / scale[None])) < np.log(1.7)) & (turned(heading[:, None], heading[None]) < 40)
    best_count, best_map = 0, None
    for hypothesis in np.argsort(-agree.sum(1), kind="stable")[:15]:
        inside = agree[hypothesis]
        for tolerance, affine in ((0.05, False), (0.04, True), (0.03, True), (0.025, True)):
            count = unique(query_frame, target_id, inside)
            if count < 3:
                break
            matrix = fit(source[inside], target[inside], affine and count >= 6)
            stretch = np.linalg.svd(matrix[:, :2], compute_uv=False)
            if np.linalg.det(matrix[:, :2]) <= 0 or stretch[0] > MAX_ANISOTROPY * stretch[1]:
                matrix = fit(source[inside], target[inside], False)
                stretch = np.linalg.svd(matrix[:, :2], compute_uv=False)
            mean = np.sqrt(stretch.prod())
            direction = np.degrees(np.arctan2(matrix[1, 0] - matrix[0, 1], matrix[0, 0] + matrix[1, 1]))
            residual = np.hypot(*(source @ matrix[:, :2].T + matrix[:, 2] - target).T)
            inside = (residual < tolerance * mean * shape[1]) & (np.abs(np.log(scale / mean)) < np.log(1.7)) & (turned(heading, direction) < 40)
        count = unique(query_frame, target_id, inside)
        width = mean * shape[1] if count >= 3 else 0
        if count > best_count and WIDTHS_KM[0] <= width <= WIDTHS_KM[1]:
            best_count, best_map = count, (matrix[:, 2], width)
    if best_map is None:
        return 0, place, wide
    return best_count, mosaic.to_place(*place, *best_map[0]), best_map[1]


def unique(query_frame, target_id, inside):
    """Inliers at different places of the picture and of the mosaic."""
    return min(len(np.unique(np.round(query_frame[inside, :2] / 2), axis=0)), len(np.unique(target_id[inside])))


def mosaic_unit(place):
    p, q = np.radians(place)
    return np.array([np.cos(p) * np.cos(q), np.cos(p) * np.sin(q), np.sin(p)], np.float32)


def query(picture):
    scale = QUERY_PIXELS / max(picture.shape[:2])
    small = cv2.resize(picture, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    found, description = keypoints(small, None, QUERY_KEYPOINTS)
    return found, description, small.shape[:2]


def locate(reference, picture):
    """(latitude, longitude), inliers, width in km; and the places of the cells, best first."""
    found, description, shape = query(picture)
    cells = votes(reference, found, description, shape) if len(found) else []
    answers = [verify(reference, found, description, shape, cell) for cell in cells]
    if not answers:
        return (0.0, 0.0), 0, 0.0, []
    count, place, width = max(answers, key=lambda answer: answer[0])
    return tuple(float(v) for v in place), int(count), float(width), [cell[0] for cell in cells]
