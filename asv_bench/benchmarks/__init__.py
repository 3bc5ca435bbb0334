# SPDX-License-Identifier: BSD-3-Clause
"""Benchmarks of kpcasketch for asv. MEASURED.md says how to run them."""

import pathlib
import sys

# `asv run --python=same` measures this checkout, also where kpcasketch is not installed. In an environment that asv
# has built for a commit, the kpcasketch of that commit comes first.
sys.path.append(str(pathlib.Path(__file__).parents[2]))
