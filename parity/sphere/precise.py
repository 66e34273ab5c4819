"""Slow reference mathematics of the sphere in mpmath: precision is bought with digits, not with clever formulas.

Conventions (those of LocDiff): a place is latitude, longitude in degrees; colatitude t = 90 degrees - latitude; real
orthonormal harmonics without the Condon-Shortley phase, coefficient (l, m) at index l*l + l + m; m > 0 is the cosine
part, m < 0 the sine part. Degrees enter as the exact binary doubles that the JSON files print.

Harmonics come from the finite hypergeometric sum, so they share nothing with the three-term recurrence that the Rust
code uses; the recurrence is here too, as a check and for whole tables.
"""

import math
from dataclasses import dataclass

from mpmath import mp, mpf

DIGITS = 60  # digits that remain after the cancellation that each routine expects


def index(degree, order):
    return degree * degree + degree + order


def degree_order(i):
    degree = math.isqrt(i)
    return degree, i - degree * degree - degree


def colatitude_of(latitude):
    return (90 - mpf(latitude)) * mp.pi / 180


def cos_sin_longitude(order, longitude):
    """cos and sin of order * longitude; exactly 0 and 1 at multiples of 90 degrees."""
    half_turns = mpf(longitude) * order / 180
    return mp.cospi(half_turns), mp.sinpi(half_turns)


def normalisation(degree, order):
    """Orthonormal over the sphere together with cos or sin of the longitude: includes the sqrt(2) of order > 0."""
    n = mp.sqrt(mpf(2 * degree + 1) * math.perm(degree + order, 2 * order) / (4 * mp.pi))
    return n * mp.sqrt(2) if order else n


def hypergeometric(a, b, c, z):
    """2F1(a, b; c; z) for an integer a <= 0: a polynomial; the caller brings digits for the cancellation."""
    total, largest, term = mpf(0), mpf(0), mpf(1)
    for k in range(1 - a):
        total += term
        largest = max(largest, abs(term))
        term *= z * ((a + k) * (b + k))
        term /= (c + k) * (k + 1)
    # what is left of a sum that vanishes by symmetry (odd functions at the equator) is noise: make it zero
    return total if abs(total) > largest * mpf(10) ** (15 - mp.dps) else mpf(0)


class MeridianFactor:
    """Y = scale * s^m * F(z) * trig(m * longitude), with s = sin t, z = sin^2(t/2) and
    F(z) = 2F1(m - l, l + m + 1; m + 1; z). The southern half is mirrored, so z <= 1/2 and at most 0.6 * degree digits
    cancel in F. Use inside `enough_digits`."""

    def __init__(self, degree, order, latitude):
        self.degree, self.order, self.south = degree, order, latitude < 0
        t = colatitude_of(abs(latitude))
        self.s, self.c, self.z = mp.sin(t), mp.cos(t), mp.sin(t / 2) ** 2
        self.scale = normalisation(degree, order) / (mpf(2) ** order * math.factorial(order))
        if self.south and (degree + order) % 2:
            self.scale = -self.scale

    def power(self, exponent):
        """s^exponent; a negative exponent is asked for only where another factor is zero."""
        return self.s**exponent if exponent >= 0 else mpf(0)

    def derivative_of_f(self, times):
        a, b, c = self.order - self.degree, self.degree + self.order + 1, self.order + 1
        factor = mp.rf(a, times) * mp.rf(b, times) / mp.rf(c, times)
        return factor * hypergeometric(a + times, b + times, c + times, self.z)


def enough_digits(degree):
    return mp.workdps(DIGITS + int(0.6 * degree))


def harmonic(degree, signed_order, latitude, longitude):
    m = abs(signed_order)
    with enough_digits(degree):
        factor = MeridianFactor(degree, m, latitude)
        cosine, sine = cos_sin_longitude(m, longitude)
        return factor.scale * factor.power(m) * factor.derivative_of_f(0) * (cosine if signed_order >= 0 else sine)


@dataclass
class Jet:
    """Value, gradient and Hessian on the unit sphere in the frame east, north."""

    value: mpf
    east: mpf
    north: mpf
    east_east: mpf
    east_north: mpf
    north_north: mpf


def harmonic_jet(degree, signed_order, latitude, longitude):
    """Y and its covariant derivatives. Every 1/s of the frame is absorbed in a power of s, so the formulas hold at
    the poles as well; there the frame is the limit along the meridian of the given longitude."""
    m = abs(signed_order)
    with enough_digits(degree):
        factor = MeridianFactor(degree, m, latitude)
        power, c = factor.power, factor.c
        f, f1, f2 = (factor.derivative_of_f(times) for times in range(3))
        cosine, sine = cos_sin_longitude(m, longitude)
        trig, slope = (cosine, -m * sine) if signed_order >= 0 else (sine, m * cosine)
        trig, slope = factor.scale * trig, factor.scale * slope

        theta = trig * (m * power(m - 1) * c * f + power(m + 1) * f1 / 2)
        theta_theta = trig * (
            m * (m - 1) * power(m - 2) * c**2 * f
            - m * power(m) * f
            + (2 * m + 1) * power(m) * c * f1 / 2
            + power(m + 2) * f2 / 4
        )
        east_theta = slope * ((m - 1) * c * power(m - 2) * f + power(m) * f1 / 2)
        to_north = 1 if factor.south else -1  # the mirrored colatitude grows to the north
        return Jet(
            value=trig * power(m) * f,
            east=slope * power(m - 1) * f,
            north=to_north * theta,
            east_east=trig * (m * (1 - m) * power(m - 2) * f - m * power(m) * f + c * power(m) * f1 / 2),
            east_north=to_north * east_theta,
            north_north=theta_theta,
        )


def recurrence_column(max_degree, order, t):
    """sqrt(2 if order) * P~_{l, order}(cos t) for l = order..=max_degree by the three-term recurrence."""
    x, s = mp.cos(t), mp.sin(t)
    p = [normalisation(order, order) * s**order / (mpf(2) ** order * math.factorial(order))]
    if max_degree > order:
        p.append(mp.sqrt(2 * order + 3) * x * p[0])
    for l in range(order + 2, max_degree + 1):
        a = mp.sqrt(mpf(4 * l * l - 1) / (l * l - order * order))
        b = mp.sqrt(mpf((l - 1) ** 2 - order * order) / (4 * (l - 1) ** 2 - 1))
        p.append(a * (x * p[-1] - b * p[-2]))
    return p


def harmonic_jet_by_definition(degree, signed_order, t, longitude):
    """The same from the textbook formulas in colatitude t and longitude, with all their 1/sin t: bring digits.

    P~ from the recurrence, its first derivative from the next order, its second from Legendre's equation."""
    m = abs(signed_order)
    s, cot = mp.sin(t), mp.cot(t)
    p, p1 = legendre_and_slope(degree, m, t)
    p2 = -cot * p1 - (degree * (degree + 1) - m * m / s**2) * p
    cosine, sine = cos_sin_longitude(m, longitude)
    trig, slope = (cosine, -m * sine) if signed_order >= 0 else (sine, m * cosine)
    return Jet(
        value=p * trig,
        east=p * slope / s,
        north=-p1 * trig,
        east_east=-m * m * p * trig / s**2 + cot * p1 * trig,
        east_north=-(p1 * slope / s - mp.cos(t) / s**2 * p * slope),
        north_north=p2 * trig,
    )


def legendre_and_slope(degree, m, t):
    """sqrt(2 if m) * P~_{degree, m}(cos t) and its derivative by t."""
    p = recurrence_column(degree, m, t)[-1]
    if degree == m:
        return p, m * mp.cot(t) * p
    next_order = recurrence_column(degree, m + 1, t)[-1]
    ladder = mp.sqrt((degree - m) * (degree + m + 1))
    return p, m * mp.cot(t) * p - (ladder if m else ladder / mp.sqrt(2)) * next_order


def field_and_gradient(coefficients, max_degree, t, longitude_turns):
    """Direct sum over all (l, m) at colatitude t and longitude 2 pi * longitude_turns: value, east, north."""
    columns = [recurrence_column(max_degree, m, t) for m in range(max_degree + 1)]
    s, cot = mp.sin(t), mp.cot(t)
    value = east = north = mpf(0)
    for m, column in enumerate(columns):
        cosine, sine = mp.cospi(2 * m * longitude_turns), mp.sinpi(2 * m * longitude_turns)
        for l in range(m, max_degree + 1):
            p = column[l - m]
            # d/dt P~_lm = m cot t P~_lm - sqrt((l-m)(l+m+1)) P~_l,m+1; columns carry sqrt(2) from m = 1 on
            next_order = columns[m + 1][l - m - 1] if l > m else mpf(0)
            scale = mp.sqrt((l - m) * (l + m + 1))
            dp = m * cot * p - (scale / mp.sqrt(2) if m == 0 else scale) * next_order
            a = mpf(coefficients[index(l, m)])
            b = mpf(coefficients[index(l, -m)]) if m else mpf(0)
            value += p * (a * cosine + b * sine)
            north -= dp * (a * cosine + b * sine)
            east += m * p * (b * cosine - a * sine) / s
    return value, east, north


def gauss_legendre(count, ring):
    """Colatitude, node x = cos(colatitude) and weight (weights sum to 2) of ring 0 (north) ..= count - 1 (south)."""
    if 2 * ring + 1 > count:
        t, x, weight = gauss_legendre(count, count - 1 - ring)
        return mp.pi - t, -x, weight
    t, step = mp.pi * (4 * ring + 3) / (4 * count + 2), mpf(1)
    while abs(step) > mpf(10) ** (-mp.dps // 2):  # Newton: after the last step the error is near that step's square
        p, derivative = legendre(count, mp.cos(t))
        step = p / (derivative * mp.sin(t))
        t += step
    x = mpf(0) if 2 * ring + 1 == count else mp.cos(t)
    _, derivative = legendre(count, x)
    return t, x, 2 / ((1 - x * x) * derivative**2)


def legendre(count, x):
    """P_count(x) and its derivative."""
    previous, p = mpf(1), x
    for l in range(2, count + 1):
        previous, p = p, ((2 * l - 1) * x * p - (l - 1) * previous) / l
    return p, count * (x * p - previous) / (x * x - 1)


def cos_sin_latitude(latitude):
    return mp.cospi(mpf(latitude) / 180), mp.sinpi(mpf(latitude) / 180)


def great_circle(start, end, radius):
    """Distance in the unit of radius and initial bearing in degrees [0, 360), None for equal places and antipodes.

    A start at a pole has its frame from the meridian of its longitude."""
    (cos_start, sin_start), (cos_end, sin_end) = cos_sin_latitude(start[0]), cos_sin_latitude(end[0])
    turns = (mpf(end[1]) - mpf(start[1])) / 180
    cosine, sine = mp.cospi(turns), mp.sinpi(turns)
    to_east = sine * cos_end
    to_north = cos_start * sin_end - sin_start * cos_end * cosine
    along = sin_start * sin_end + cos_start * cos_end * cosine
    across = mp.hypot(to_east, to_north)
    if across < mpf(10) ** (10 - mp.dps):  # the nearest pairs of distinct doubles are far above this
        return (mpf(0) if along > 0 else mp.pi * radius), None
    bearing = mp.atan2(to_east, to_north) * 180 / mp.pi
    return mp.atan2(across, along) * radius, bearing % 360


def destination(start, bearing, distance, radius):
    """Latitude and longitude [-180, 180) in degrees."""
    cos_start, sin_start = cos_sin_latitude(start[0])
    east, north = mp.sinpi(mpf(bearing) / 180), mp.cospi(mpf(bearing) / 180)
    angle = mpf(distance) / radius
    sine, cosine = mp.sin(angle), mp.cos(angle)
    # in the start's meridian frame: outward (towards the equator), along the axis, and east
    axis = sin_start * cosine + cos_start * sine * north
    outward = cos_start * cosine - sin_start * sine * north
    eastward = sine * east
    latitude = mp.atan2(axis, mp.hypot(outward, eastward)) * 180 / mp.pi
    longitude = mpf(start[1]) + mp.atan2(eastward, outward) * 180 / mp.pi
    return latitude, (longitude + 180) % 360 - 180
