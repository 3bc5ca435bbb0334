# SPDX-License-Identifier: BSD-3-Clause
"""Every bound of the papers, judged: `python -m paper_checks`."""

import os

# BLAS's threads spin beside those of numba, and a decomposition of 500 rows takes a second in place of .02 on a busy
# machine.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is imported
