"""What every reader makes of its kernel table: sums by signature, and columns without repeats."""

from __future__ import annotations

from array import array

import numpy as np

from agent.core.kernels import KernelTable, Signature, SignatureStats
from agent.traces.vectors import as_vector, least_by, most_by, sums_by


def sum_by_signature(table: KernelTable) -> dict[Signature, SignatureStats]:
    """Sum the events of each signature that has any, in the order of the table's signatures."""
    ids, n_signatures = as_vector(table.signature_id), len(table.signatures)
    columns = ids, as_vector(table.duration_ns), n_signatures
    counts = np.bincount(ids, minlength=n_signatures).tolist()
    sums = zip(counts, sums_by(*columns), least_by(*columns), most_by(*columns), strict=True)
    return {
        signature: SignatureStats(*of_signature)
        for signature, of_signature in zip(table.signatures, sums, strict=True)
        if of_signature[0]
    }


def without(column: array[int], dropped: frozenset[int]) -> array[int]:
    """Give a column without the entries at some places."""
    return array(column.typecode, [value for at, value in enumerate(column) if at not in dropped])
