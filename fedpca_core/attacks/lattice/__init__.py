"""From a second-moment matrix to the very records.

A matrix ``S = X X^T / m`` fixes its m records X up to a rotation; whole numbers fix the
rotation, as long as there are fewer records than features. In the order of reading::

    F <- a matrix as a factor, S = F F^T                     attacks.low_rank.Factor
    B <- F sqrt(m) / grid = (X - mu 1^T) Q, Q unknown        records._question
    B <- short whole combinations of its rows                reduction.sieve
    repeat, with ever more rows and finer tags               directions.attempts
        rows  <- independent rows, those of mu with them     directions._first_rows, LatticeQuestion
        basis <- LLL of [rows | tags]                        reduction.reduce_generators
        if basis is orthonormal: its rows are e_j^T Q
        else  rows that the lattice lacks are added          directions._outside
              or e_j^T Q are the unit vectors of the dual    reduction.short_vectors
        X <- round B Q^T + mu 1^T, refit Q, ever more rows   polish.settle
        certified if X gives B back to its known error       certificate.certify
            and nothing else does                            polish.nothing_else_fits
    of all matrices that the server had, the first that is   apart.take_apart

What differs where less, or more, is known:

- ``without_mean``: mu is kept back, and the differences between records follow.
- ``codes``: columns of zeros and ones, and counts tell the records, however many they are.
- ``span``: eigenvectors without their sizes; the matrices behind them are sought first.
"""
