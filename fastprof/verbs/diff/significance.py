"""Whether the costs of several runs differ by more than their noise.

Welch's t-test, two-sided, compares the means of two samples whose variances may differ:

    t = (mean a - mean b) / sqrt(va + vb)                   va = variance of a / runs of a
    degrees of freedom = (va + vb)^2 / (va^2 / (runs of a - 1) + vb^2 / (runs of b - 1))

Of many functions some differ by chance.  The procedure of Benjamini and Hochberg keeps their expected share of the
reported functions below `alpha`: of m sorted p the first k are kept, for the largest k with p[k] <= alpha * k / m.
"""

from collections.abc import Sequence
from math import exp, lgamma, log, log1p


def welch(a: Sequence[float], b: Sequence[float]) -> float | None:
    """The probability of a difference as large by chance.  None: one of them has fewer than two runs."""
    if len(a) < 2 or len(b) < 2:
        return None
    means = [sum(one) / len(one) for one in (a, b)]
    va, vb = (
        sum((x - mean) ** 2 for x in one) / (len(one) - 1) / len(one) for one, mean in zip((a, b), means, strict=True)
    )
    difference = means[0] - means[1]
    if not va + vb:
        return 0.0 if difference else 1.0
    freedom = (va + vb) ** 2 / (va**2 / (len(a) - 1) + vb**2 / (len(b) - 1))
    # of Student's distribution: P(|T| > t) = I(freedom / (freedom + t^2); freedom / 2, 1 / 2)
    return _beta(freedom / (freedom + difference**2 / (va + vb)), freedom / 2, 0.5)


def least_significant(found: Sequence[float], n: int, alpha: float) -> float:
    """The largest p to report; -1: none.  `found`: the results of `n` tests that are at most `alpha`."""
    best = -1.0
    for k, p in enumerate(sorted(found), 1):
        if p <= alpha * k / n:
            best = p
    return best


_TINY = 1e-300
_STEPS = 300


def _beta(x: float, a: float, b: float) -> float:
    """The regularized incomplete beta function, by its continued fraction (Lentz's method)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):  # the fraction would converge slowly
        return 1 - _beta(1 - x, b, a)
    factor = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x))
    c, d = 1.0, 1 / _nonzero(1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, _STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            c, d = _nonzero(1 + term / c), 1 / _nonzero(1 + term * d)
            fraction *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return min(1.0, factor * fraction / a)


def _nonzero(value: float) -> float:
    """`value`, replaced by a tiny number if it is 0."""
    return value if abs(value) > _TINY else _TINY
