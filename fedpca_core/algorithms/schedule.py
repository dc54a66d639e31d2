"""When machines that make several local products in a row speak to the server."""

from fedpca_core.errors import require


def synchronisation_times(products: int, period: int, decay: bool = True) -> tuple[int, ...]:
    """Local products after which the machines upload (FedPower, section 3).

    Parameters
    ----------
    products : int
        T, local products of the whole run, counted from 1.
    period : int
        p, products before the first upload.
    decay : bool
        Gaps p, p-1, ..., 2, 1, 1, ... instead of p, p, p, ...

    Returns tuple of int: increasing times in 1..T; T itself need not be among them.

    Raises InvalidInput: fewer than 1 product or a period outside 1..T.
    """
    require(products >= 1, f"A run makes at least 1 local product, not {products}.")
    require(
        1 <= period <= products,
        f"The first upload after {period} local products does not fit a run of {products}; "
        f"choose a period between 1 and {products}.",
    )
    times: list[int] = []
    time, gap = 0, period
    while time + gap <= products:
        time += gap
        times.append(time)
        if decay:
            gap = max(gap - 1, 1)
    return tuple(times)
