# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Stories, and tests of our plugins in a slurmctld, that script/test plays a second time (pytest --reruns 1): they failed,
beside five other suites on two cores.

A story that fails twice has failed. One that passes then is a fault all the same, of the story or of the product, and its
report is printed as that of a failure is: find the cause. More than MOST of them in one suite are no chance any more, and
the suite has failed. What shows that nothing is given twice, as races and random plays and assertions on who has which
device do, must not fail even once, and is played once: once_only.
"""
import pytest

once_only = pytest.mark.flaky(reruns=0)


class Replays:
	MOST = 2

	def __init__(self, config):
		self.config = config
		self.count = 0

	def line(self, text):
		self.config.pluginmanager.get_plugin("terminalreporter").write_line(text)

	def pytest_runtest_logreport(self, report):
		if report.outcome != "rerun":
			return
		self.count += 1
		if self.count > self.MOST:
			self.config.option.reruns = 0
		self.line(f"failed in its {report.when}, is played again: {report.nodeid}")
		self.line(report.longreprtext)
		for name, text in report.sections:
			self.line(f"--- {name} ---\n{text}")

	def pytest_sessionfinish(self, session):
		if self.count > self.MOST:
			self.line(f"{self.count} stories were played again, more than {self.MOST}: the suite has failed")
			session.exitstatus = pytest.ExitCode.TESTS_FAILED
