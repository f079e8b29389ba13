"""Special functions of the acquisition functions, on NumPy arrays, with their derivatives.

`normal`: functions of the standard normal that hold in its tails. `truncation`: the gain of
knowing that f ≤ f*. `orthant`: a Gaussian vector known to be non-negative. Where an acquisition
climbs a function, `…_and_slope` returns its value and its derivative at the cost of little more
than the value. No floating-point warning escapes, whatever the host's `np.seterr`.
"""
