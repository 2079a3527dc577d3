# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Stories of pods that go through Slurm: real slurmctld, slurmd and our plugins.

Run: /usr/bin/python3 -m pytest test/stories [--api sim|real]     (root; SK8_BUILD names the build folder)
SK8_KEEP=1 keeps the folders of stands, with their logs, and those of stories.
"""
import os
import re
import shutil
import sys

import pytest

sys.dont_write_bytecode = True
TEST = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, TEST)
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from mixed import mixing, sharing_pods  # noqa: E402
from slurm_clock import SlurmClock  # noqa: E402
from stands.build import build_folder  # noqa: E402
from stands.own_folders import own_folders  # noqa: E402
from stands.process import Daemon, daemons, tail  # noqa: E402
from stands.replays import Replays  # noqa: E402
from stands.slurm import stock_plugins  # noqa: E402
from stands.waiting import StandError  # noqa: E402
from turns import TURNS, is_played  # noqa: E402
from world import Stand  # noqa: E402


def pytest_addoption(parser):
	parser.addoption("--api", choices=["sim", "sim-only", "real", "real-only"], action="append",
		help="the API servers to run on (default: both); -only: what makes no sense on the other one")
	parser.addoption("--turn", choices=list(TURNS), help="without what script/test plays with the other release only (default: all); "
		"with --api sim-only that, too, if kubesim can play it")


def pytest_configure(config):
	config.addinivalue_line("markers", "apis(NAME...): the story makes sense on these API servers only")
	config.addinivalue_line("markers", "each_release: played with each release of Slurm, though turns.py names its file")
	config.addinivalue_line("markers", "slow: takes more than half a minute")
	config.addinivalue_line("markers", "flaky(reruns): how often script/test plays the story again, if it fails")
	config.pluginmanager.register(Replays(config))
	own_folders()


def wanted_apis(config):
	return [name.removesuffix("-only") for name in config.getoption("--api") or ["sim", "real"]]


def pytest_generate_tests(metafunc):
	if "api" in metafunc.fixturenames:
		wanted = wanted_apis(metafunc.config)
		marker = metafunc.definition.get_closest_marker("apis")
		metafunc.parametrize("api", [name for name in wanted if not marker or name in marker.args], indirect=True,
			scope="session")


def pytest_collection_modifyitems(config, items):
	# stories that choose their own API server run with the others of that server
	asked = config.getoption("--api") or []
	other = {"sim-only": "real", "real-only": "sim"}.get(asked[0]) if len(asked) == 1 else None

	turn = config.getoption("--turn")

	def its_turn(item):
		return is_played(item.path, turn) or item.get_closest_marker("each_release")

	def foreign(item):
		marker = item.get_closest_marker("apis")
		if asked == ["sim-only"] and not its_turn(item):
			return marker and "sim" not in marker.args  # no real one plays it in this turn
		if other and (not marker or other in marker.args):
			return True
		return not its_turn(item) or marker and not set(marker.args) & set(wanted_apis(config))
	others = [item for item in items if foreign(item)]
	config.hook.pytest_deselected(items=others)
	items[:] = [item for item in items if item not in others]
	if os.geteuid() != 0:
		for item in items:
			item.add_marker(pytest.mark.skip(reason="a stand needs root"))


@pytest.fixture(scope="session")
def api(request):
	return request.param


class Stands:
	"""The stands of this run. One that a story left in disorder is replaced."""

	# Each kubelet has six of the 128 inotify instances that a user may have, and other runs have stands, too.
	MOST = 2

	def __init__(self):
		self.running = {}  # the one that was used last is the last one
		self.lent = []

	def get(self, *what):
		found = self.running.pop(what, None)
		if found and found.spoiled:
			found.down()
			found = None
		if not found:
			self._make_room(what[0])
			found = Stand(*what)
			print(f"stand {' '.join(what)} was ready after {found.seconds:.0f} s")
		self.running[what] = found
		return found

	def _make_room(self, kind):
		"""Two kinds at once would only slow each other."""
		idle = [key for key, stand in self.running.items() if stand not in self.lent]
		over = len(self.running) - self.MOST + 1
		for key in [key for number, key in enumerate(idle) if number < over or key[0] != kind]:
			self.running.pop(key).down()

	def down(self):
		for found in self.running.values():
			found.down()


@pytest.fixture(scope="session")
def session_stands():
	found = Stands()
	yield found
	found.down()


def lent(request, stands, *what):
	"""The stand, put in order afterwards."""
	found = stands.get(*what)
	stands.lent.append(found)
	found.log_began = found.log_size()
	request.node.stand = found
	try:
		yield found
	finally:
		stands.lent.remove(found)
	try:
		found.clean()
	except (StandError, OSError):
		found.spoiled = True
		raise


@pytest.fixture
def stand(request, session_stands, api):
	"""For one story."""
	yield from lent(request, session_stands, api)


@pytest.fixture(scope="module")
def shared(request, session_stands, api):
	"""For all stories of a module: they run side by side, each looks at its own pods and jobs."""
	yield from lent(request, session_stands, api)


@pytest.fixture
def standby(request, session_stands):
	"""With a second controller; the first is in charge."""
	yield from lent(request, session_stands, "sim", "--backup", "--slurm-conf", "SlurmctldTimeout=10")


def need_slurmdbd():
	"""One that was built without MySQL's headers at hand has none that works; no package does that."""
	if not os.path.exists(os.path.join(stock_plugins(), "accounting_storage_mysql.so")):
		pytest.skip("this Slurm was built without MySQL: it has no accounting_storage_mysql.so for slurmdbd")


def with_conf(*lines):
	"""Words for a stand with these lines in slurm.conf."""
	return tuple(word for line in lines for word in ("--slurm-conf", line))


@pytest.fixture
def preempting(request, session_stands, api):
	"""Partitions of a higher tier preempt those of a lower one."""
	yield from lent(request, session_stands, api,
		*with_conf("PreemptType=preempt/partition_prio", "PreemptMode=CANCEL", "KillWait=1"))


@pytest.fixture
def preempting_by_clock(request, session_stands, slurm_clock):
	"""The same, and slurmctld has this clock."""
	yield from lent(request, session_stands, "sim",
		*with_conf("PreemptType=preempt/partition_prio", "PreemptMode=CANCEL", "KillWait=1"), *slurm_clock.options)


@pytest.fixture
def aging(request, session_stands):
	"""The same, and Slurm computes priorities by age alone, which 24.11 does with slurmdbd only."""
	need_slurmdbd()
	yield from lent(request, session_stands, "sim", "--accounting", *with_conf("PreemptType=preempt/partition_prio", "PreemptMode=CANCEL", "KillWait=1",
		"PriorityType=priority/multifactor", "PriorityWeightAge=1000000", "PriorityMaxAge=1-0"))


@pytest.fixture
def preempting_qos(request, session_stands):
	"""QOS high preempts normal."""
	need_slurmdbd()
	yield from lent(request, session_stands, "sim", "--accounting", *with_conf("PreemptType=preempt/qos", "PreemptMode=CANCEL"))


@pytest.fixture
def suspending(request, session_stands, api):
	"""They suspend them."""
	yield from lent(request, session_stands, api, *with_conf("PreemptType=preempt/partition_prio", "PreemptMode=SUSPEND,GANG"))


@pytest.fixture
def gated(request, session_stands, api):
	"""Slurm's own jobs go through the gate, if anything is set that needs it."""
	yield from lent(request, session_stands, api, *with_conf("PrEpPlugins=prep/script,prep/k8s"))


@pytest.fixture
def mixed(gated):
	"""Slurm's own jobs hold reservation pods on the shared nodes."""
	yield from mixing(gated)


@pytest.fixture
def mixed_preempting(request, session_stands, api):
	"""The same, and partitions of a higher tier preempt those of a lower one."""
	for found in lent(request, session_stands, api, *with_conf("PrEpPlugins=prep/script,prep/k8s", "PreemptType=preempt/partition_prio",
			"PreemptMode=CANCEL", "KillWait=1")):
		yield from mixing(found)


@pytest.fixture
def sharing(mixed):
	"""Small jobs share a reservation pod of their node."""
	yield from sharing_pods(mixed)


@pytest.fixture
def accounted(request, session_stands):
	"""With slurmdbd, on kubesim."""
	need_slurmdbd()
	yield from lent(request, session_stands, "sim", "--accounting")


@pytest.fixture
def many(request, session_stands):
	"""With a thousand nodes more; the first few of them have a slurmd. Each has devices, for who speaks of them."""
	yield from lent(request, session_stands, "sim", "--fake-nodes", "1000", "--gres", "gpu@0-7:4,hca@0-7:2,page:8")


@pytest.fixture(scope="session")
def slurm_clock(tmp_path_factory):
	return SlurmClock(tmp_path_factory.mktemp("clock"))


@pytest.fixture
def clocked(request, session_stands, slurm_clock):
	"""slurmctld has this clock."""
	yield from lent(request, session_stands, "sim", *slurm_clock.options)


@pytest.fixture(scope="module")
def accounting(request, session_stands):
	"""With slurmdbd, on a real API server."""
	need_slurmdbd()
	yield from lent(request, session_stands, "real", "--accounting")


def last_words(folder):
	"""Of each daemon that has ended."""
	for daemon in daemons(folder):
		if not daemon.pid:
			text = tail(daemon.log, 200)
			at = text.find("crash of process")
			lines = (text[at:].splitlines()[:12] if at >= 0 else text.splitlines()[-4:]) or ["without a word"]
			yield from (f"{daemon.name} has ended: {line.strip()}" for line in lines)


def errors_of_slurmds(folder):
	"""The last ones of each."""
	for daemon in daemons(folder):
		if daemon.name.startswith("slurmd-"):
			lines = [line for line in tail(daemon.log, 200).splitlines() if ("error" in line or "warning" in line) and "pmix" not in line]
			yield from (f"{daemon.name}: {line}" for line in lines[-10:])


def stacks(stand):
	"""Of a slurmctld that runs and says nothing to a ping."""
	daemon = Daemon(stand.folder, "slurmctld")
	if not daemon.pid or "UP" in stand.run("timeout", "20", "scontrol", "ping", check=False).stdout:
		return ""
	try:
		return daemon.stacks()
	except (OSError, StandError) as error:
		return str(error)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
	outcome = yield
	report = outcome.get_result()
	found = next((node.stand for node in reversed(item.listchain()) if hasattr(node, "stand")), None)  # of lent(), its own first
	# gone: the stand could not be cleaned after the last story
	if not report.failed or not found or not os.path.exists(found.folder):
		return
	# as pytest marks what it says of a failure: script/test shows these lines again at its end
	report.sections.append(("daemons that have ended", "\n".join(f"E   {line}" for line in last_words(found.folder))))
	if hangs := stacks(found):
		report.sections.append(("slurmctld hangs", "\n".join(f"E   {line}" for line in hangs.splitlines())))
	log = found.log(found.log_began)
	lines = [line for line in log.splitlines() if "slurm-k8s" in line or "error" in line or "JobId" in line]
	report.sections.append((f"slurmctld of {found.folder}", "\n".join(lines[-80:])))
	whole = os.path.join(build_folder(), "test", re.sub(r"[^\w-]", "_", item.name))
	with open(whole + ".slurmctld.log", "w", encoding="utf-8") as file:
		file.write(log)
	shutil.copytree(os.path.join(found.folder, "log"), whole + ".logs", dirs_exist_ok=True)
	report.sections.append(("slurmd", "\n".join(errors_of_slurmds(found.folder))))
	report.sections.append(("all of it", f"{whole}.slurmctld.log, of the others from the beginning: {whole}.logs"))
	found.spoiled = True  # as a story that failed leaves it; its fixtures may not have put in order what they changed
	report.sections.append(("jobs", found.run("squeue", "-a", "-o", "%i %T %r %N %j %u %a %p", check=False).stdout))
