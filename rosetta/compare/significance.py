"""Is a change more than noise? Two conditions, as asv has them: the medians differ by a factor, and the samples differ.

Whether samples differ is asked of the Mann-Whitney test, which assumes nothing about how times are distributed (they have
a long tail on one side). From fewer than five against five values it can never be as sure as ``P_VALUE``; then the
samples' ranges must lie the whole factor apart.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import comb, erfc, inf, sqrt

from rosetta.figures import Sample

P_VALUE = 0.01
ALONE = 3  # a single run has no spread: it must change by that many times as much, 1.3 for 1.1
EXACT = 400  # products of sample sizes up to which the test's distribution is counted out


def ratio(before: float, after: float) -> float:
    return after / before if before else (1.0 if after == before else inf)


def apart(before: Sample, after: Sample, factor: float) -> str | None:
    """Why two samples differ by more than noise, in a few words; None if they do not."""
    change = ratio(before.median, after.median)
    if 1 / factor <= change <= factor:
        return None
    fewer = min(len(before), len(after))
    if fewer > 1 and 2 / comb(len(before) + len(after), fewer) < P_VALUE:
        p = mann_whitney(before.values, after.values)
        return f"p = {p:.1g}" if p < P_VALUE else None
    needed = factor if fewer > 1 else 1 + ALONE * (factor - 1)
    gap = ratio(before.high, after.low) if change > 1 else ratio(after.high, before.low)
    if gap <= needed:
        return None
    return f"ranges {gap:.2f} times apart" if fewer > 1 else f"n = 1: more than {needed:.2f} times"


def mann_whitney(first: Sequence[float], second: Sequence[float]) -> float:
    """The p-value, two-sided, of the Mann-Whitney U test. Equal values count as whatever makes the samples more alike."""
    m, n = len(first), len(second)
    greater = sum(x > y for x in first for y in second)
    equal = sum(x == y for x in first for y in second)
    if greater <= m * n / 2 <= greater + equal:
        return 1.0
    u = min(greater + equal, m * n - greater)  # the smaller of both U, after the equal ones are shared out
    if m * n <= EXACT:
        return min(1.0, 2 * sum(_orderings(m, n)[: u + 1]) / comb(m + n, m))
    deviation = (u + 0.5 - m * n / 2) / sqrt(m * n * (m + n + 1) / 12)
    return min(1.0, erfc(-deviation / sqrt(2)))


@lru_cache
def _orderings(m: int, n: int) -> list[int]:
    """How many orderings of m and n values have U = 0, 1, ..., mn: the coefficients of the Gaussian binomial."""
    counts = [1] + [0] * (m * n)
    for i in range(1, m + 1):
        for u in range(m * n, n + i - 1, -1):  # times 1 - q^(n + i)
            counts[u] -= counts[u - n - i]
        for u in range(i, m * n + 1):  # divided by 1 - q^i
            counts[u] += counts[u - i]
    return counts
