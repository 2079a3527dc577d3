# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Features that labels give nodes, in a real slurmctld: what scontrol shows and --constraint finds, and whose they are."""
import itertools
import os
import random
import re
import time

import pytest
from conftest import CONF, Cluster
from stands.waiting import StandError, wait_for

A, B = "k8s.topology..kubernetes..io/zone.a", "k8s.topology..kubernetes..io/zone.b"


def lists(cluster, node):
	found = cluster.node(node)
	return tuple(found.get(name, "").replace("(null)", "") for name in ("AvailableFeatures", "ActiveFeatures"))


def give(cluster, node, features, active=None, expected=None):
	had = expected or lists(cluster, node)
	return cluster.ask("features", node, f"expected={had[0]}", f"expected_active={had[1]}", f"features={features}",
		f"active={features if active is None else active}")


@pytest.fixture
def nodes(cluster):
	yield cluster
	cluster.cancel_all()
	for node in cluster.nodes:
		give(cluster, node, "")


@pytest.fixture(name="cluster_of_three", scope="module")
def cluster_of_three_fixture():
	cluster = Cluster(nodes=["n1", "n2", "n3"], conf=CONF + "PartitionName=high Nodes=ALL PriorityTier=20\n")
	in_one_line(cluster)
	yield cluster
	cluster.down()


def in_one_line(cluster):
	"""slurm.conf describes all nodes by one line, so that Slurm has one record for them: from 23.11 on it makes that of alike ones, too."""
	conf = os.path.join(cluster.slurm.etc, "slurm.conf")
	with open(conf, encoding="utf-8") as file:
		text = file.read()
	lines = re.findall(r"^NodeName=(n\d) (.*) Port=(\d+)$", text, re.MULTILINE)
	assert [name for name, *_ in lines] == cluster.nodes
	one = f"NodeName={','.join(cluster.nodes)} {lines[0][1]} Port=[{','.join(port for *_, port in lines)}]"
	with open(conf, "w", encoding="utf-8") as file:
		file.write(re.sub(r"^NodeName=n1 .*$", one, re.sub(r"^NodeName=n[23] .*\n", "", text, flags=re.MULTILINE), flags=re.MULTILINE))
	cluster.restart()


def constrained(cluster, text, *options):
	return cluster.batch("-C", text, "-N1", *options)


def runs_on(cluster, job):
	wait_for(f"job {job} to run", lambda: cluster.show(job)["JobState"] == "RUNNING", 20, lambda: str(cluster.show(job)))
	return cluster.show(job)["NodeList"]


def test_features_are_shown_and_found_by_every_operator_of_constraints(nodes):
	assert give(nodes, "n1", f"big,{A}")["rc"] == give(nodes, "n2", B)["rc"] == "0"
	assert lists(nodes, "n1") == (f"big,{A}", f"big,{A}") and lists(nodes, "n2") == (B, B)
	assert runs_on(nodes, constrained(nodes, A)) == "n1"
	assert runs_on(nodes, constrained(nodes, B)) == "n2"
	assert runs_on(nodes, constrained(nodes, f"{A}&big")) == "n1"
	assert runs_on(nodes, constrained(nodes, f"{B}|big", "-w", "n2")) == "n2"
	both = nodes.batch("-C", f"[{A}*1&{B}*1]", "-N2")
	wait_for("both nodes", lambda: nodes.show(both)["NodeList"] == "n[1-2]", 20, lambda: str(nodes.show(both)))
	either = nodes.batch("-C", f"[{A}|{B}]", "-N1")
	assert runs_on(nodes, either) in ("n1", "n2")


@pytest.mark.parametrize("feature", ["k8s.a_b.x", "k8s.a.b_c", "k8s.a.b-c", "k8s.a.1..2", "k8s.a-b..io/c_d..e.F..0-g_h", f"k8s.{'x' * 63}.{'x' * 63}"])
def test_features_of_labels_with_all_that_a_label_may_have_are_found(nodes, feature):
	give(nodes, "n1", f"big,{feature}")
	give(nodes, "n2", f"{feature}x,{A}")
	assert lists(nodes, "n1")[1] == f"big,{feature}"
	for constraint in (feature, f"{feature}&big", f"{feature}|big", f"[{feature}]"):
		assert runs_on(nodes, constrained(nodes, constraint)) == "n1"
	assert runs_on(nodes, constrained(nodes, f"{feature}x&{A}")) == "n2"


def test_a_change_is_made_only_of_what_was_expected(nodes):
	give(nodes, "n1", A)
	told = give(nodes, "n1", B, expected=("", ""))
	assert told["rc"] != "0" and (told["features"], told["active"]) == (A, A)
	assert give(nodes, "nope", B, expected=("", ""))["rc"] != "0"


def test_a_label_that_no_node_has_any_more_holds_a_job_and_comes_back_with_the_label_at_once(nodes):
	give(nodes, "n1", A)
	block = nodes.batch("-w", "n1", "--exclusive")
	nodes.becomes(block, "RUNNING")
	job = constrained(nodes, A)
	give(nodes, "n1", B)
	nodes.run("scancel", str(block))
	wait_for("no node for it", lambda: nodes.show(job)["Reason"] == "BadConstraints", 60, lambda: str(nodes.show(job)))
	assert nodes.show(job)["Priority"] == "0"
	assert comments(nodes, job) == [WAITS, WAITS]
	began = time.monotonic()
	give(nodes, "n2", A)
	assert runs_on(nodes, job) == "n2"
	assert time.monotonic() - began < 15  # Slurm itself looks every 30 seconds
	assert comments(nodes, job) == []


WAITS = f'slurm-k8s: the job waits: no node has the label for {A} (k8s.KEY.VALUE, each dot of the key twice); sinfo -o "%N %f" shows what nodes have'


def comments(cluster, job):
	"""The system's and its user's."""
	found = dict(re.findall(r"^ +(SystemComment|Comment)=(.*?) *$", cluster.run("scontrol", "show", "job", str(job)), re.M))
	return [found[name] for name in ("SystemComment", "Comment") if name in found]


def test_jobs_that_wait_for_a_label_say_so_while_no_node_has_it_and_the_log_once(nodes):
	give(nodes, "n1", f"{A},{B}")
	give(nodes, "n2", f"{A},{B}")
	began = len(nodes.log())
	one, mine = constrained(nodes, A, "--begin=now+1hour"), constrained(nodes, A, "--begin=now+1hour", "--comment=for Bob")
	two, other = nodes.batch("-C", f"[{A}|{B}]", "-N2", "--begin=now+1hour"), constrained(nodes, f"{A}|{B}", "--begin=now+1hour")
	give(nodes, "n1", B)
	assert comments(nodes, one) == comments(nodes, two) == []
	give(nodes, "n2", "")
	assert (comments(nodes, one), comments(nodes, mine), comments(nodes, other)) == ([WAITS, WAITS], [WAITS, "for Bob"], [])
	assert comments(nodes, two)[0].startswith(f"slurm-k8s: the job waits: of the 2 nodes with the same of [{A}|{B}] that it wants there is 1;")
	give(nodes, "n2", "big")
	assert len(re.findall(f"2 jobs with --constraint={re.escape(A)} wait: slurm-k8s: no node has the label for", nodes.log()[began:])) == 1
	nodes.run("scontrol", "update", f"JobId={mine}", f"Features={B}", "StartTime=now")
	assert runs_on(nodes, mine) == "n1"
	assert comments(nodes, mine) == ["for Bob"]
	nodes.reconfigure()  # Slurm forgets all features
	give(nodes, "n2", "big")
	assert comments(nodes, one) == [WAITS, WAITS]
	give(nodes, "n1", A)
	assert comments(nodes, one) == []


def test_a_job_that_its_user_holds_stays_held(nodes):
	give(nodes, "n1", A)
	job = constrained(nodes, A, "--hold")
	give(nodes, "n2", A)
	assert (nodes.show(job)["Priority"], nodes.show(job)["Reason"]) == ("0", "JobHeldUser")


def test_a_reconfigure_and_a_restart_leave_what_slurm_conf_has_and_double_nothing(nodes):
	give(nodes, "n1", f"{A},{B}")
	for again in (nodes.reconfigure, nodes.restart):
		again()
		assert lists(nodes, "n1") == ("", "")
		assert give(nodes, "n1", A)["rc"] == "0"
		assert lists(nodes, "n1") == (A, A)


@pytest.mark.parametrize("constraint", ["k8s.nobody.knows", f"[{A}*1&k8s.nobody.knows*1]", f"{A}|k8s.nobody.knows"])
def test_what_no_node_has_ever_had_is_refused_by_slurm_and_the_user_reads_which_label_it_is(nodes, constraint):
	give(nodes, "n1", A)
	with pytest.raises(StandError, match="(?s)no node has the label for k8s.nobody.knows .*Invalid feature"):
		constrained(nodes, constraint)


def said(nodes, constraint):
	return nodes.run("sh", "-c", f"sbatch -D / -o /dev/null -N1 -C '{constraint}' --wrap 'sleep 600' 2>&1")


GONE, LOST = "k8s.zone.gone", "k8s.zone.lost"
OTHERS = tuple(f"k8s.zone.{number}" for number in range(8))


@pytest.fixture
def less(nodes):
	"""n1 has B alone; the others it has had."""
	give(nodes, "n1", ",".join((GONE, LOST, *OTHERS)))
	give(nodes, "n1", f"{B},big")
	return nodes


@pytest.mark.parametrize("constraint, named", [(GONE, GONE), (f"{GONE}|{LOST}", f"{GONE}, {LOST}"), (f"[{GONE}|{LOST}]", f"{GONE}, {LOST}"),
	(f"{GONE}|{LOST}&{B}", f"{GONE}, {LOST}"), (f"[{GONE}*1|{LOST}*2]", f"{GONE}, {LOST}"), (f"{B}&({GONE}|{LOST})", f"{GONE}, {LOST}"),
	(f"({GONE}|{B})&{LOST}", LOST), (f"{B}|big&{GONE}", GONE), (f"{GONE}|{LOST}|k8s.zone.never", f"{GONE}, {LOST}, k8s.zone.never"),
	(f"[{GONE}*1&{B}*1]", GONE), (f"{GONE}*2", GONE), (f"{B}&[{GONE}|{LOST}]", f"{GONE}, {LOST}"), (f"{GONE}&{B}&big", GONE)])
def test_of_labels_that_no_node_has_any_more_the_user_reads_which(less, constraint, named):
	with pytest.raises(StandError, match="no node has the label for " + re.escape(named) + " "):
		said(less, constraint)


@pytest.mark.parametrize("constraint", [B, f"{GONE}|{B}", f"[{B}|{GONE}]", f"({GONE}|{B})&big", f"{GONE}|big&{B}", f"{GONE}|{LOST}|{B}",
	f"big&({GONE}|{B})", f"[{B}*1&big*1]", "|".join([GONE, LOST, *OTHERS, B])])
def test_a_label_that_no_node_has_any_more_is_not_named_where_there_is_a_choice(less, constraint):
	assert "slurm-k8s" not in less.run("sh", "-c", f"sbatch -D / -o /dev/null -N1 -C '{constraint}' --wrap 'sleep 600' 2>&1 || true")


C = "k8s.zone.c"


@pytest.mark.parametrize("constraint, told", [(f"{A}&{B}", f"no node has both {A} and {B};"), (f"{A},big,{B}", f"no node has both {A} and {B};"),
	(f"big&{B}", f"no node has both big and {B};"), (f"{B}&({A}|big)", f"no node has both {B} and ({A}|big);"),
	(f"{A}|big&{B}", f"no node has both {A}|big and {B};"),
	(f"({A}&{B})", f"no node has ({A}&{B});"), (f"[{A}*1&{C}*3]", f"of the 3 nodes with {C} that it wants there are 2;"),
	(f"{A}*2", f"of the 2 nodes with {A} that it wants there are 1;")])
def test_labels_that_no_node_has_together_or_too_few_have_are_named(nodes, constraint, told):
	give(nodes, "n1", f"big,{A},{C}")
	give(nodes, "n2", f"{B},{C}")
	with pytest.raises(StandError) as error:
		said(nodes, constraint)
	assert told in str(error.value)


@pytest.mark.parametrize("constraint", [f"{A}&big", f"{A}|{B}", f"{C}&({A}|{B})", f"{A}&{B}|{C}", f"[{A}*1&{B}*1]", f"{C}*2", f"[{A}|{B}]&{C}"])
def test_nothing_is_said_of_labels_that_are_there(nodes, constraint):
	give(nodes, "n1", f"big,{A},{C}")
	give(nodes, "n2", f"{B},{C}")
	assert "slurm-k8s" not in nodes.run("sh", "-c", f"sbatch -D / -o /dev/null -N1-2 -C '{constraint}' --wrap 'sleep 600' 2>&1")


def test_three_labels_of_which_nodes_have_any_two_are_named_together(cluster_of_three):
	for node, features in (("n1", f"{A},{B}"), ("n2", f"{B},{C}"), ("n3", f"{A},{C}")):
		give(cluster_of_three, node, features)
	with pytest.raises(StandError, match=re.escape(f"no node has {A}, {B} and {C} together;")):
		said(cluster_of_three, f"{A}&{B}&{C}")


@pytest.mark.parametrize("number, constraint, told", [(2, f"[{A}|{B}]", f"of the 2 nodes with the same of [{A}|{B}] that it wants there is 1;"),
	(2, A, f"of the 2 nodes with {A} that it wants there is 1;"), (3, f"[{A}|{C}]", f"of the 3 nodes with the same of [{A}|{C}] that it wants there are 2;"),
	(2, f"[k8s.zone.none|{A}]", f"of the 2 nodes with the same of [k8s.zone.none|{A}] that it wants there is 1;")])
def test_too_few_nodes_with_the_same_label_are_told(cluster_of_three, number, constraint, told):
	give(cluster_of_three, "n1", "k8s.zone.none")
	for node, features in (("n1", f"{A},{C}"), ("n2", B), ("n3", C)):
		give(cluster_of_three, node, features)
	with pytest.raises(StandError) as error:
		cluster_of_three.batch("-C", constraint, f"-N{number}")
	assert told in str(error.value)


def test_a_hint_is_given_of_exactly_those_numbers_of_nodes_that_slurm_refuses(cluster_of_three):
	"""Of [(a|b)|c] 22.05 wants a of all nodes (valid_feature_counts()), which nobody says."""
	for node, features in (("n1", f"{A},{C},{B}"), ("n2", f"{B},big"), ("n3", f"{C},big")):
		give(cluster_of_three, node, features)
	refusals = 0
	for number in (1, 2, 3):
		for text in (A, B, f"{A}|{B}", f"{B}&big", f"{A}|{B}&big", f"({A}|{B})&{C}", *(text.format(f"[{A}|{B}]") for text in ("{}", "{}&big", "big&{}", "{},big")),
				f"[{B}|{C}]", f"[{C}|{B}]", f"big&[{B}|{C}]", f"[{A}|({B}&{C})]", f"[{A}|{B}|{C}]", f"[{A}|(big|{B})]"):
			told = cluster_of_three.run("sh", "-c", f"sbatch --begin=now+1hour -D / -o /dev/null -N{number} -C '{text}' --wrap true 2>&1 || true")
			refused = "error: Batch job submission failed" in told
			refusals += refused
			assert refused == ("slurm-k8s: " in told), f"{number} {text}: {told}"
	cluster_of_three.cancel_all()
	assert 10 < refusals < 40


# which of n1, with A and C, n2, with B, and n3, with C, a job may have
CHOICES = [(f"[{A}|{B}]", "n1 n2"), (f"[{A}|{C}]", "n1 n3"), (f"{C}&[{A}|{B}]", "n1"), (f"[{A}|{B}]&{C}", "n1"), (f"{B}&[{A}|{C}]", ""),
	(f"[{B}|({A}&{C})]", "n1 n2"), (f"[{B}|({A}|{C})]", "n1 n2 n3")]


@pytest.mark.parametrize("constraint, fit", CHOICES)
def test_brackets_find_nodes_with_the_feature_and_not_those_beside_them_in_slurm_conf(cluster_of_three, constraint, fit):
	for node, features in (("n1", f"{A},{C}"), ("n2", B), ("n3", C)):
		give(cluster_of_three, node, features)
	found = []
	for node in cluster_of_three.nodes:
		told = cluster_of_three.run("sh", "-c", f"sbatch --parsable -D / -o /dev/null -N1 -w {node} -C '{constraint}' --wrap 'sleep 600' 2>&1 || true")
		if told.strip().isdigit():
			assert runs_on(cluster_of_three, int(told)) == node
			found.append(node)
		else:
			assert "Requested node configuration is not available" in told
			assert ("slurm-k8s" in told) == (not fit), told
	cluster_of_three.cancel_all()
	assert " ".join(found) == fit


def test_all_nodes_of_a_job_with_brackets_have_the_same_feature(cluster_of_three):
	for node, features in (("n1", A), ("n2", B), ("n3", A)):
		give(cluster_of_three, node, features)
	job = cluster_of_three.batch("-C", f"[{B}|{A}]", "-N2")
	cluster_of_three.becomes(job, "RUNNING")
	assert cluster_of_three.show(job)["NodeList"] == "n[1,3]"
	block = cluster_of_three.batch("-C", f"[{B}|{A}]", "-N1", "--exclusive")
	assert runs_on(cluster_of_three, block) == "n2"
	with pytest.raises(StandError, match="Requested node configuration is not available"):
		cluster_of_three.batch("-C", f"[{B}|{A}]", "-N3")
	cluster_of_three.cancel_all()


def planned(cluster, constraint, *options):
	"""Where a job with a node of its own would run, and whom it would preempt, as sbatch --test-only tells."""
	told = cluster.run("sh", "-c", f"sbatch --test-only -N1 --exclusive -C '{constraint}' {' '.join(options)} --wrap true 2>&1")
	node, victims = re.search(r" on nodes? (\S+) ", told), re.search(r"Preempts: (\S+)", told, re.IGNORECASE)
	assert node, told
	return node[1], victims[1] if victims else ""


@pytest.fixture
def zones(cluster_of_three):
	"""n1 has A and n2 has B: both are busy, n1 for longer, with a job that would be preempted beside."""
	cluster = cluster_of_three
	for node, features in (("n1", A), ("n2", B), ("n3", "")):
		give(cluster, node, features)
	for node, minutes in (("n1", 60), ("n2", 10)):
		cluster.becomes(cluster.batch("-p", "high", "-w", node, "-n1", f"-t{minutes}"), "RUNNING")
	yield cluster
	cluster.cancel_all()


@pytest.mark.parametrize("constraint", [f"[{A}|{B}]", f"[{B}|{A}]", f"[{A}|k8s.zone.none|{B}]"])
def test_of_features_in_brackets_a_job_is_planned_with_the_one_that_is_free_first(zones, constraint):
	give(zones, "n3", "k8s.zone.none")
	give(zones, "n3", "")
	assert planned(zones, constraint) == ("n2", "")
	give(zones, "n3", "k8s.zone.none")
	assert planned(zones, f"[{A}|{B}|k8s.zone.none]") == ("n3", "")


def test_what_would_be_preempted_for_one_feature_in_brackets_is_not_for_another(zones):
	low = zones.batch("-w", "n1", "-n1", "-t5")
	zones.becomes(low, "RUNNING")
	assert planned(zones, A, "-p", "high") == ("n1", str(low))
	assert planned(zones, f"[{A}|{B}]", "-p", "high") == ("n2", "")
	assert planned(zones, f"[{A}]", "-p", "high") == ("n1", str(low))


class Constraints:
	"""At random, with what they mean: sets of nodes, from left to right, as Slurm reads them."""

	def __init__(self, chance, has):
		self.chance, self.has = chance, has

	def some(self, depth=0):
		"""A constraint without numbers: a list of (operator, name or such a list)."""
		return [(self.chance.choice("&&|"), self.some(depth + 1) if not depth and self.chance.random() < 0.3 else self.chance.choice(sorted(self.has)))
			for _ in range(self.chance.choice((2, 2, 3) if depth else (1, 2, 2, 3, 4)))]

	def text(self, terms):
		return "".join((op if number else "") + (term if isinstance(term, str) else f"({self.text(term)})") for number, (op, term) in enumerate(terms))

	def nodes(self, terms, has=None):
		"""Those that meet it."""
		found = None
		for op, term in terms:
			its = (has or self.has)[term] if isinstance(term, str) else self.nodes(term, has)
			found = its if found is None else found & its if op == "&" else found | its
		return found

	def at_fault(self, terms):
		"""Of what no node has that without which it is not possible, whatever the others: if all had it, or, if even that does not
		help, if each were alone."""
		everywhere, missing = {"n1", "n2", "n3"}, [name for name, nodes in self.has.items() if not nodes]
		has = self.has
		if not self.nodes(terms, {name: nodes or everywhere for name, nodes in has.items()}):
			has = {name: nodes and everywhere for name, nodes in has.items()}

		def possible(there):
			return bool(self.nodes(terms, {**has, **{name: everywhere for name in there}}))
		subsets = [set(found) for size in range(len(missing) + 1) for found in itertools.combinations(missing, size)]
		return {name for name in missing if any(possible(some | {name}) and not possible(some) for some in subsets)}


def test_a_hint_is_given_exactly_of_what_slurm_refuses_and_names_what_no_node_has(cluster_of_three):
	"""Slurm is the judge of what cannot be met, whatever the constraint."""
	seed = int(os.environ.get("SK8_SEED", random.randrange(1 << 32)))
	print(f"SK8_SEED={seed}")
	has = {A: {"n1"}, B: {"n2", "n3"}, C: {"n1", "n3"}, GONE: set(), LOST: set()}
	give(cluster_of_three, "n1", f"{GONE},{LOST}")
	for node in ("n1", "n2", "n3"):
		give(cluster_of_three, node, ",".join(name for name, nodes in has.items() if node in nodes))
	constraints = Constraints(random.Random(seed), has)
	refusals = 0
	for _ in range(400):
		terms = constraints.some()
		text = constraints.text(terms)
		told = cluster_of_three.run("sh", "-c", f"sbatch --begin=now+1hour -D / -o /dev/null -N1 -C '{text}' --wrap true 2>&1 || true")
		refused = "error: Batch job submission failed" in told
		refusals += refused
		assert refused == (not constraints.nodes(terms)) == ("slurm-k8s: no node has" in told), f"{text}: {told}"
		named = re.search(r"no node has the label for (.*) \(k8s.KEY", told)
		assert (set(named[1].split(", ")) if named else set()) == constraints.at_fault(terms), f"{text}: {told}"
	assert 40 < refusals < 360


def test_a_pool_that_is_mistyped_is_called_no_label(nodes):
	give(nodes, "n1", f"{A},k8s.exclusive,k8s.shared")
	with pytest.raises(StandError) as error:
		said(nodes, f"{A}&k8s.exclusiv")
	assert "no node has k8s.exclusiv, and no label makes such a feature" in str(error.value) and "the label for" not in str(error.value)
	with pytest.raises(StandError) as error:
		said(nodes, "k8s.exclusiv&k8s.zone.x")
	assert "no node has the label for k8s.zone.x " in str(error.value) and "no node has k8s.exclusiv, and" in str(error.value)


def test_who_changes_a_constraint_is_told_which_label_it_is(nodes):
	give(nodes, "n1", A)
	give(nodes, "n2", B)
	job = constrained(nodes, A, "--hold")
	for constraint, hint in (("k8s.nobody.knows", "no node has the label for k8s.nobody.knows "), (f"{A}&{B}", f"no node has both {A} and {B};")):
		before = len(nodes.log())
		told = nodes.run("sh", "-c", f"scontrol update JobId={job} Features='{constraint}' 2>&1 || true")
		assert hint in told or (nodes.release.startswith("22.05") and hint in nodes.log()[before:]), told


@pytest.fixture
def helped():
	"""n1's slurmd has features of its own: fast is active, slow would need a reboot. And jobs have a gate."""
	cluster = Cluster(nodes=["n1"], conf="PartitionName=all Nodes=n1 Default=YES\nPrEpPlugins=prep/script,prep/k8s\n")
	try:
		helper = os.path.join(cluster.folder, "helper.sh")
		with open(os.open(helper, os.O_WRONLY | os.O_CREAT, 0o755), "w", encoding="utf-8") as file:
			file.write("#!/bin/sh\necho fast\n")
		with open(os.open(helper + ".reboot", os.O_WRONLY | os.O_CREAT, 0o755), "w", encoding="utf-8") as file:
			file.write(f"#!/bin/sh\ntouch {helper}.rebooted\n")
		with open(os.path.join(cluster.slurm.etc, "helpers.conf"), "w", encoding="utf-8") as file:
			file.write(f"Feature=fast Helper={helper}\nFeature=slow Helper={helper}\n")
		with open(os.path.join(cluster.slurm.etc, "slurm.conf"), "a", encoding="utf-8") as file:
			file.write(f"NodeFeaturesPlugins=node_features/helpers\nRebootProgram={helper}.reboot\n")
		for name in ("slurmctld", "slurmd-n1"):
			cluster.slurm.daemon(name).stop()
			cluster.slurm.daemon(name).start_again()
		cluster.slurm.wait_controller()
		wait_for("features of helpers", lambda: kinds(cluster) == ({"fast", "slow"}, {"fast"}), 30, lambda: str(lists(cluster, "n1")))
		cluster.slurm.wait_nodes(["n1"])
		yield cluster
	finally:
		cluster.down()


def kinds(cluster):
	return tuple(set(filter(None, found.split(","))) for found in lists(cluster, "n1"))


def reboots(cluster):
	return "REBOOT" in cluster.node("n1")["State"] or os.path.exists(os.path.join(cluster.folder, "helper.sh.rebooted"))


def test_features_of_helpers_stay_theirs_and_ours_come_and_go_beside_them_without_a_reboot(helped):
	for label in (A, B):
		assert give(helped, "n1", f"fast,slow,{label}", f"fast,{label}")["rc"] == "0"
		assert kinds(helped) == ({"fast", "slow", label}, {"fast", label})
	daemon = helped.slurm.daemon("slurmd-n1")
	began = helped.node("n1")["SlurmdStartTime"]
	wait_for("another second", lambda: time.strftime("%Y-%m-%dT%H:%M:%S") > began, 5)
	daemon.stop()
	daemon.start_again()
	wait_for("n1 to be back", lambda: helped.node("n1")["SlurmdStartTime"] != began, 30)
	assert kinds(helped) == ({"fast", "slow", B}, {"fast", B})
	job = constrained(helped, f"{B}&fast")
	assert runs_on(helped, job) == "n1"
	assert not reboots(helped)
	give(helped, "n1", "fast,slow", "fast")
	assert kinds(helped) == ({"fast", "slow"}, {"fast"})


def test_a_job_that_asks_for_an_exclusive_node_has_it_emptied_and_not_rebooted(helped):
	give(helped, "n1", "fast,slow,k8s.exclusive,k8s.shared", "fast,k8s.exclusive,k8s.shared")
	helped.tell("mask", "n1", "milli=8000", "exclusive_milli=0")
	helped.tell("gate", "keeps")
	job = constrained(helped, "k8s.exclusive&fast", "-n8")
	wait_for("the job in the gate", lambda: helped.run("squeue", "-h", "-j", str(job), "-o", "%T").strip() == "CONFIGURING", 30,
		lambda: str(helped.show(job)))
	helped.tell("unmask")
	helped.tell("gate", "opens")
	helped.tell("answer", job, "open")
	assert runs_on(helped, job) == "n1"
	assert not reboots(helped)
	helped.run("scancel", str(job))
	constrained(helped, "slow")  # of a plugin that reboots nodes
	wait_for("a reboot", lambda: reboots(helped), 60, lambda: str(helped.node("n1")))
