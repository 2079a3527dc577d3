# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Runs last: what all stories before it cost slurmctld."""
import clock


def test_no_hook_took_a_millisecond_in_all_that_happened(stand):
	stand.pod("one").wait_job("COMPLETED")
	clock.check(stand.spare, ["sk8_on_job_start", "sk8_on_job_fini", "sk8_on_reconfigure", "sk8_masks_get"])
