# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""What only kubesim has: nodes that run pods, faults on order, restarts.

Run: /usr/bin/python3 -m pytest test/kubesim      (SK8_BUILD names the build folder)
What it shares with a real server is in test/contract.
"""
import email.utils
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "contract"), os.path.dirname(HERE)]
from stands.build import build_folder  # noqa: E402
from kube import STRATEGIC, Kube, brief, pod  # noqa: E402

PROGRAM = os.path.join(build_folder(), "test/kubesim/kubesim")
PODS = "/api/v1/namespaces/default/pods"
OWN = "kubesim.slurm-k8s.io/"


class Stand:
	def __init__(self, folder, *options):
		self.folder = str(folder)
		self.options = options
		self.up()

	def up(self):
		argv = [f"{HERE}/up", "--kubesim", PROGRAM, *self.options[:-1], self.folder, *self.options[-1]]
		subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
		self.kube = Kube(f"{self.folder}/admin.conf")

	@property
	def pid(self):
		with open(f"{self.folder}/kubesim.pid", encoding="ascii") as file:
			return int(file.read())

	def crash(self):
		os.kill(self.pid, signal.SIGKILL)
		until(lambda: not alive(self.pid))

	def down(self):
		subprocess.run([f"{HERE}/down", self.folder], check=True)

	def lines(self, name):
		with open(f"{self.folder}/{name}", encoding="utf-8") as file:
			return [json.loads(line) for line in file]

	def runs(self, made):
		"""Container events of a pod, as (event, reason)."""
		return [(e["event"], e.get("reason")) for e in self.lines("runtime.log") if e["uid"] == made["metadata"]["uid"]]

	def fault(self, action, count=1, **more):
		match = {k: more.pop(k) for k in ("verb", "resource", "path", "user") if k in more}
		answer = self.kube.post("/kubesim/faults", {"action": action, "count": count, "match": match, **more})
		assert answer.code == 200, answer


def alive(pid):
	try:
		with open(f"/proc/{pid}/stat", encoding="ascii") as file:
			return file.read().rsplit(")", 1)[1].split()[0] != "Z"
	except OSError:
		return False


def until(condition, seconds=15):
	end = time.monotonic() + seconds
	while not (value := condition()):
		assert time.monotonic() < end, "waited too long"
		time.sleep(0.02)
	return value


def wait_for(kube, name, condition, seconds=20):
	"""The pod, once condition(pod) holds; watched, not polled."""
	with kube.watch(PODS, fieldSelector=f"metadata.name={name}", timeout=seconds) as watch:
		for event in watch:
			if condition(event["object"], event["type"]):
				return event["object"]
	raise AssertionError("the watch ended")


def phase(wanted):
	return lambda p, _: p["status"]["phase"] == wanted


def wait_gone(kube, name, seconds=20):
	until(lambda: kube.get(f"{PODS}/{name}").code == 404, seconds)


def terminated(p):
	return p["status"]["containerStatuses"][0]["state"]["terminated"]


def run(name, script, node="n1", cpu="1", meta=None, **spec):
	container = {"name": "c", "image": "localhost/busybox:test", "command": ["sh", "-c", script],
		"resources": {"requests": {"cpu": cpu}}}
	return pod(name, meta=meta or {}, nodeName=node, restartPolicy=spec.pop("restartPolicy", "Never"),
		containers=[container], **spec)


@pytest.fixture(scope="module")
def stand(tmp_path_factory):
	made = Stand(tmp_path_factory.mktemp("kubesim"), "--nodes", "n1", "--fake-nodes", "2", "--user", "jane:staff", [])
	yield made
	made.down()


@pytest.fixture
def kube(stand):
	yield stand.kube
	stand.kube.delete("/kubesim/faults")
	for p in stand.kube.get(PODS)["items"]:
		path = f"{PODS}/{p['metadata']['name']}"
		stand.kube.patch(path, {"metadata": {"finalizers": None}})
		stand.kube.delete(path, {"gracePeriodSeconds": 1})
	until(lambda: not stand.kube.get(PODS)["items"])


def create(kube, body):
	answer = kube.post(PODS, body)
	assert answer.code == 201, answer
	return answer.body


# -- nodes that run pods

def test_command_runs_and_its_exit_code_is_reported(stand, kube):
	made = create(kube, run("a", "echo hello $NAME; exit 7"))
	done = wait_for(kube, "a", phase("Failed"))
	end = terminated(done)
	assert (end["exitCode"], end["reason"]) == (7, "Error")
	assert end["containerID"].startswith("kubesim://") and done["status"]["startTime"]
	assert kube.get(f"{PODS}/a/log").body.strip() == "hello"
	assert stand.runs(made) == [("start", None), ("stop", "Error")]


def test_success_and_missing_program(kube):
	create(kube, run("a", "true"))
	assert terminated(wait_for(kube, "a", phase("Succeeded")))["reason"] == "Completed"
	create(kube, pod("b", nodeName="n1", restartPolicy="Never",
		containers=[{"name": "c", "image": "i", "command": ["/no/such/program"]}]))
	end = terminated(wait_for(kube, "b", phase("Failed")))
	assert (end["exitCode"], end["reason"]) == (128, "StartError") and "/no/such/program" in end["message"]


def test_environment_and_own_fields_reach_the_command(kube):
	body = run("a", "echo $GREETING-$JOB", meta={"annotations": {"job": "42"}})
	body["spec"]["containers"][0]["env"] = [{"name": "GREETING", "value": "hi"},
		{"name": "JOB", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['job']"}}}]
	create(kube, body)
	wait_for(kube, "a", phase("Succeeded"))
	assert kube.get(f"{PODS}/a/log").body == "hi-42\n"


def test_pod_that_does_not_fit_is_rejected_until_there_is_room(stand, kube):
	create(kube, run("a", "sleep 100", cpu="5"))
	wait_for(kube, "a", phase("Running"))
	second = create(kube, run("b", "true", cpu="4"))
	status = wait_for(kube, "b", phase("Failed"))["status"]
	assert status["reason"] == "OutOfcpu" and status["message"] == ("Pod was rejected: Node didn't have enough "
		"resource: cpu, requested: 4000, used: 5000, capacity: 8000")
	assert stand.runs(second) == []
	kube.delete(f"{PODS}/a", {"gracePeriodSeconds": 1})
	wait_gone(kube, "a")
	create(kube, run("c", "true", cpu="8"))
	wait_for(kube, "c", phase("Succeeded"))


def resize(kube, name, cpu):
	patch = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}}
	answer = kube.patch(f"{PODS}/{name}/resize", patch, "application/strategic-merge-patch+json")
	assert answer.code == 200, answer
	return answer["metadata"]["generation"]


def allocation(cpu, generation, pending=None):
	"""A condition for wait_for(): what the kubelet says of the pod's resize."""
	def holds(p, _):
		status = p["status"]
		reasons = [c["reason"] for c in status.get("conditions", []) if c["type"] == "PodResizePending"]
		return status.get("observedGeneration") == generation and reasons == ([pending] if pending else []) and \
			status["containerStatuses"][0].get("allocatedResources", {}).get("cpu") == cpu
	return holds


def test_resize_is_set_aside_if_there_is_room_and_else_put_off_until_there_is(stand, kube):
	create(kube, run("a", "sleep 100", cpu="2"))
	create(kube, run("b", "sleep 100", cpu="3"))
	for name in ("a", "b"):
		wait_for(kube, name, phase("Running"))
	wait_for(kube, "a", allocation("4", resize(kube, "a", "4")))
	wait_for(kube, "a", allocation("4", resize(kube, "a", "6"), "Deferred"))
	create(kube, run("late", "true", cpu="2"))
	assert wait_for(kube, "late", phase("Failed"))["status"]["reason"] == "OutOfcpu"  # four of them are set aside
	wait_for(kube, "a", allocation("4", resize(kube, "a", "9"), "Infeasible"))
	generation = resize(kube, "a", "7")
	wait_for(kube, "a", allocation("4", generation, "Deferred"))
	kube.delete(f"{PODS}/b", {"gracePeriodSeconds": 1})
	wait_for(kube, "a", allocation("7", generation))
	wait_for(kube, "a", allocation("1", resize(kube, "a", "1")))


def test_terminating_pod_holds_its_room_until_its_process_is_gone(stand, kube):
	made = create(kube, run("a", "trap '' TERM; while :; do sleep 0.1; done", cpu="8"))
	wait_for(kube, "a", phase("Running"))
	kube.delete(f"{PODS}/a", {"gracePeriodSeconds": 2})
	create(kube, run("b", "true"))
	assert wait_for(kube, "b", phase("Failed"))["status"]["reason"] == "OutOfcpu"
	wait_gone(kube, "a")
	assert stand.runs(made) == [("start", None), ("stop", "Error")]


def test_handled_sigterm_ends_a_pod_early_with_its_own_code(stand, kube):
	# the finalizer keeps the object until it has been seen: without it all is over before the watch begins
	create(kube, run("a", "trap 'exit 3' TERM; echo set; sleep 100 & wait", meta={"finalizers": ["kubesim.test/x"]}))
	wait_for(kube, "a", phase("Running"))
	until(lambda: kube.get(f"{PODS}/a/log").body == "set\n")
	begun = time.monotonic()
	kube.delete(f"{PODS}/a")
	assert terminated(wait_for(kube, "a", lambda p, _: "terminated" in str(p["status"]), 25))["exitCode"] == 3
	assert time.monotonic() - begun < 10
	kube.patch(f"{PODS}/a", {"metadata": {"$deleteFromPrimitiveList/finalizers": ["kubesim.test/x"]}}, STRATEGIC)


def test_ignored_sigterm_is_followed_by_sigkill_after_the_grace(kube):
	create(kube, run("a", "sleep 100", terminationGracePeriodSeconds=1, meta={"finalizers": ["kubesim.test/x"]}))
	wait_for(kube, "a", phase("Running"))
	kube.delete(f"{PODS}/a")
	ended = wait_for(kube, "a", lambda p, _: p["status"]["phase"] == "Failed" and
		p["metadata"]["deletionGracePeriodSeconds"] == 0)
	assert terminated(ended)["exitCode"] == 137
	kube.patch(f"{PODS}/a", {"metadata": {"$deleteFromPrimitiveList/finalizers": ["kubesim.test/x"]}}, STRATEGIC)
	assert kube.get(f"{PODS}/a").code == 404


def test_forced_deletion_leaves_the_process_its_grace(stand, kube):
	made = create(kube, run("a", "sleep 100", terminationGracePeriodSeconds=1))
	wait_for(kube, "a", phase("Running"))
	kube.delete(f"{PODS}/a", {"gracePeriodSeconds": 0})
	assert kube.get(f"{PODS}/a").code == 404
	assert stand.runs(made) == [("start", None)], "it still runs"
	until(lambda: stand.runs(made)[-1][0] == "stop")


def test_deadline_fails_the_pod(kube):
	create(kube, run("a", "sleep 100", activeDeadlineSeconds=1, terminationGracePeriodSeconds=1))
	status = wait_for(kube, "a", phase("Failed"))["status"]
	assert status["reason"] == "DeadlineExceeded"
	assert status["message"] == "Pod was active on the node longer than the specified deadline"


def test_memory_kill_is_played_on_demand(kube):
	create(kube, run("a", "exit 1", meta={"annotations": {OWN + "terminate-as": "OOMKilled"}}))
	end = terminated(wait_for(kube, "a", phase("Failed")))
	assert (end["exitCode"], end["reason"]) == (137, "OOMKilled")


def test_restart_policy_restarts(kube):
	create(kube, run("a", "exit 1", restartPolicy="OnFailure"))
	again = wait_for(kube, "a", lambda p, _: p["status"].get("containerStatuses") and
		p["status"]["containerStatuses"][0]["restartCount"] == 1)
	assert again["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 1


def test_timer_pod_runs_and_ends(stand, kube):
	annotations = {OWN + "run-seconds": "0.3", OWN + "exit-code": "9"}
	create(kube, run("a", "x", node="f1", meta={"annotations": annotations}))
	assert terminated(wait_for(kube, "a", phase("Failed")))["exitCode"] == 9
	second = create(kube, run("b", "x", node="f1"))
	wait_for(kube, "b", phase("Running"))
	create(kube, run("c", "x", node="f1", cpu="7500m"))
	assert wait_for(kube, "c", phase("Failed"))["status"]["reason"] == "OutOfcpu"
	kube.delete(f"{PODS}/b")
	wait_gone(kube, "b")
	assert stand.runs(second) == [("start", None), ("stop", "Error")]


def test_audit_log_shows_requests_in_kubernetes_form(stand, kube):
	create(kube, pod("audited"))
	body = {"metadata": {"name": "audited", "annotations": {"job": "7"}}, "target": {"kind": "Node", "name": "f2"}}
	assert kube.post(f"{PODS}/audited/binding", body).code == 201
	def found():
		return [e for e in stand.lines("audit.log") if e.get("objectRef", {}).get("subresource") == "binding"]
	entry = until(found)[-1]
	assert entry["verb"] == "create" and entry["user"]["username"] == "admin"
	assert entry["objectRef"]["name"] == "audited" and entry["requestObject"] == body
	assert entry["responseStatus"]["code"] == 201 and entry["stage"] == "ResponseComplete"
	assert entry["requestReceivedTimestamp"] <= entry["stageTimestamp"]
	assert len(entry["stageTimestamp"]) == len("2026-01-02T03:04:05.000006Z")


# -- who may come in

def test_other_certificate_is_another_user(stand):
	jane = Kube(f"{stand.folder}/jane.conf")
	answer = jane.get(PODS)
	assert answer.code == 403 and answer["message"].startswith('pods is forbidden: User "jane" cannot list')
	assert jane.post("/kubesim/faults", {"action": "hang"}).code == 403


def test_tokens_come_from_a_file(tmp_path):
	(tmp_path / "tokens").write_text('secret,joe,1,"system:masters,others"\n')
	stand = Stand(tmp_path / "s", ["--", "--token-file", str(tmp_path / "tokens")])
	try:
		assert stand.kube.without_certificate("secret").get(PODS).code == 200
		assert stand.kube.without_certificate("wrong").get(PODS).code == 401
		assert stand.kube.without_certificate().get(PODS).code == 401
	finally:
		stand.down()


# -- faults

def test_status_fault_hits_as_often_as_it_says(stand, kube):
	stand.fault("status", 2, verb="list", resource="pods", code=429, retryAfter=3)
	first = kube.get(PODS)
	assert first.code == 429 and first["reason"] == "TooManyRequests" and first.headers["Retry-After"] == "3"
	assert kube.get("/api/v1/nodes").code == 200
	assert kube.get(PODS).code == 429
	assert kube.get(PODS).code == 200
	assert kube.get("/kubesim/faults")["rules"][0]["hits"] == 2


def test_clock_fault_makes_the_date_of_an_answer_wrong_and_no_other_one(stand, kube):
	def skew():
		return email.utils.parsedate_to_datetime(kube.get("/version").headers["Date"]).timestamp() - time.time()
	stand.fault("clock", 1, path="/version", seconds=-3600)
	assert abs(skew() + 3600) < 5
	assert abs(skew()) < 5


def test_delayed_and_hanging_requests(stand, kube):
	stand.fault("delay", delayMs=300, path=PODS)
	begun = time.monotonic()
	assert kube.get(PODS).code == 200 and time.monotonic() - begun >= 0.3
	stand.fault("hang", path=PODS)
	connection = kube.connect(timeout=0.5)
	connection.request("GET", PODS)
	with pytest.raises(TimeoutError):
		connection.getresponse()
	connection.close()
	assert kube.get(PODS).code == 200


def test_reset_and_truncated_answers(stand, kube):
	stand.fault("reset", path=PODS)
	connection = kube.connect()
	connection.request("GET", PODS)
	with pytest.raises((OSError, http.client.HTTPException)):
		connection.getresponse()
	stand.fault("truncate", path=PODS, bytes=10)
	connection = kube.connect()
	connection.request("GET", PODS)
	with pytest.raises((OSError, http.client.HTTPException)):
		connection.getresponse().read()


def test_answer_of_another_type_and_of_any_size_instead_of_an_answer(stand, kube):
	stand.fault("answer", path=PODS, type="text/html", body="<html>", bytes=100)
	answer = kube.get(PODS)
	assert (answer.code, answer.headers["Content-Type"], answer.body) == (200, "text/html", "<html>" * 17)


def test_denied_request_looks_like_rbac(stand, kube):
	stand.fault("deny", resource="pods/binding")
	answer = kube.post(f"{PODS}/a/binding", {})
	assert answer.code == 403 and 'cannot create resource "pods/binding"' in answer["message"]


def test_open_watches_expire_and_lose_repeat_and_reorder_events(stand, kube):
	rv = kube.get(PODS)["metadata"]["resourceVersion"]
	with kube.watch(PODS, resourceVersion=rv) as watch:
		create(kube, pod("first"))
		assert brief(next(watch)) == ("ADDED", "first")
		stand.fault("drop-events", 1, resource="pods")
		create(kube, pod("lost"))
		stand.fault("duplicate-events", 1, resource="pods")
		create(kube, pod("twice"))
		assert watch.next(2) == [("ADDED", "twice")] * 2
		stand.fault("reorder-events", 1, resource="pods")
		create(kube, pod("later"))
		create(kube, pod("sooner"))
		create(kube, pod("in-order"))
		assert watch.next(3) == [("ADDED", "sooner"), ("ADDED", "later"), ("ADDED", "in-order")]
		stand.fault("expire-watches", resource="pods")
		error = next(watch)
		assert error["type"] == "ERROR" and error["object"]["code"] == 410
		assert list(watch) == []


def test_wrong_rule_is_explained(kube):
	answer = kube.post("/kubesim/faults", {"action": "explode"})
	assert answer.code == 400 and "action must be one of" in answer["message"]
	answer = kube.post("/kubesim/faults", {"action": "hang", "match": {"path": "("}})
	assert answer.code == 400 and answer["message"].startswith("match.path: ")


# -- restarts

def test_objects_and_processes_survive_a_killed_server(tmp_path):
	stand = Stand(tmp_path, "--nodes", "n1", "--fake-nodes", "1", [])
	try:
		create(stand.kube, run("long", "sleep 2; exit 5"))
		create(stand.kube, run("short", "sleep 0.5; exit 6"))
		create(stand.kube, run("timer", "x", node="f1", meta={"annotations": {OWN + "run-seconds": "2"}}))
		orphan = create(stand.kube, run("ever", "sleep 1000", terminationGracePeriodSeconds=1))
		for name in ("long", "short", "timer", "ever"):
			wait_for(stand.kube, name, lambda p, _: p["status"]["phase"] != "Pending")
		rv = int(stand.kube.get(PODS)["metadata"]["resourceVersion"])
		stand.crash()
		time.sleep(1)  # "short" ends while nobody looks
		stand.up()
		assert stand.kube.get(f"{PODS}/ever")["metadata"]["uid"] == orphan["metadata"]["uid"]
		assert terminated(wait_for(stand.kube, "short", phase("Failed")))["exitCode"] == 6
		assert terminated(wait_for(stand.kube, "long", phase("Failed")))["exitCode"] == 5
		wait_for(stand.kube, "timer", phase("Succeeded"))
		assert int(stand.kube.get(PODS)["metadata"]["resourceVersion"]) > rv
		assert stand.runs(orphan) == [("start", None)], "started once only"
		old = list(stand.kube.watch(PODS, resourceVersion=str(rv - 1)))
		assert [e["object"]["code"] for e in old] == [410]
		stand.kube.delete(f"{PODS}/ever")
		wait_gone(stand.kube, "ever")
	finally:
		stand.down()


def test_down_leaves_no_process(tmp_path):
	stand = Stand(tmp_path, "--nodes", "n1", [])
	create(stand.kube, run("a", "sleep 1000 & sleep 1000"))
	wait_for(stand.kube, "a", phase("Running"))
	pid = stand.pid
	folder, = (tmp_path / "runtime").iterdir()
	main = int(until(lambda: (folder / "main.pid").exists() and (folder / "main.pid").read_text()))
	stand.down()
	until(lambda: not alive(pid) and not alive(main))
	stand.down()  # again: nothing to do


# -- the program itself

def test_server_that_accepts_and_hangs(tmp_path):
	port_file = tmp_path / "port"
	with subprocess.Popen([PROGRAM, "--accept-and-hang", "--port-file", str(port_file)], stdout=subprocess.DEVNULL) as server:
		try:
			port = int(until(lambda: port_file.exists() and port_file.read_text().strip()))
			with socket.create_connection(("127.0.0.1", port), 5) as connection:
				connection.settimeout(0.3)
				connection.send(b"GET / HTTP/1.1\r\n\r\n")
				with pytest.raises(TimeoutError):
					connection.recv(1)
		finally:
			server.kill()


@pytest.mark.parametrize("options,message", [
	(["--no-such"], "unknown option --no-such"), (["--listen", "nowhere"], "--listen: nowhere is no ADDR:PORT"),
	(["--tls-cert"], "--tls-cert needs FILE"), ([], "--tls-cert and --tls-key are needed"),
	(["--tls-cert", "a", "--tls-key", "b"], "give --client-ca or --token-file")])
def test_wrong_options_are_explained(options, message):
	done = subprocess.run([PROGRAM, *options], capture_output=True, text=True, check=False)
	assert done.returncode == 2 and message in done.stderr and done.stderr.count("\n") == 1


def test_help_is_printed():
	done = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True, check=True)
	assert "--sim-kubelet" in done.stdout and "/kubesim/faults" in done.stdout
