# SPDX-License-Identifier: BSD-3-Clause
"""Every bound of the papers, judged: `python -m paper_checks`."""
