# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""--k8s-service-account: kubectl in a job's container is a ServiceAccount, as long as the job runs. Kubelet, API server and slurmd are real."""
import http.client
import os
import pwd
import shutil
import ssl
import subprocess

import pytest
from mixed import NAMESPACE, wait_no_reservation
from stands.api import ApiError
from stands.waiting import wait_for
from test_container import Batch, containing, told
from world import IMAGE as BUSYBOX

pytestmark = pytest.mark.apis("real")

USER = "daemon"
NAME = f"system:serviceaccount:{NAMESPACE}:{USER}"
PLAIN = ("--mem=200", "-n1", "-D", "/tmp")
OPTIONS = (*PLAIN, f"--k8s-image={BUSYBOX}")
CORE, RBAC = f"/api/v1/namespaces/{NAMESPACE}", f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}"
TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount/token"


def make(stand, path, name, **content):
	try:
		stand.api.post(path, {"metadata": {"name": name}, **content})
	except ApiError as error:
		if error.status != 409:  # of another story
			raise


def give_accounts(stand):
	"""What a namespace has where accounts are, as kube-controller-manager would."""
	with open(os.path.join(stand.folder, "kubernetes", "pki", "ca.crt"), encoding="utf-8") as file:
		make(stand, f"{CORE}/configmaps", "kube-root-ca.crt", data={"ca.crt": file.read()})


@pytest.fixture
def accounts(request, session_stands):
	for stand in containing(request, session_stands, serviceAccounts=["{user}", "public-*"]):
		give_accounts(stand)
		yield stand


def carry(program, folder):
	"""A copy of a program that runs where the machine's libraries are not; the words that run it."""
	shutil.copy(program, folder)
	name = os.path.join(folder, os.path.basename(program))
	done = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
	if done.returncode:  # it needs none
		return [name]
	libraries = [word for line in done.stdout.splitlines() for word in line.split() if word.startswith("/")]
	for library in libraries:
		shutil.copy(library, folder)
	loader, = (library for library in libraries if "/ld-" in library)
	return [os.path.join(folder, os.path.basename(loader)), "--library-path", str(folder), name]


def status_with(stand, token):
	"""What the API server answers to whoever has this token."""
	tls = ssl.create_default_context(cafile=os.path.join(stand.folder, "kubernetes", "pki", "ca.crt"))
	connection = http.client.HTTPSConnection(stand.api.host, int(stand.api.port), timeout=30, context=tls)
	try:
		connection.request("GET", f"{CORE}/configmaps/mine", headers={"Authorization": f"Bearer {token}"})
		return connection.getresponse().status
	finally:
		connection.close()


def files_with(stand, text):
	"""Of what daemons write down: logs, and Slurm's state."""
	folders = [os.path.join(stand.folder, name) for name in ("log", "slurm/state")]
	return subprocess.run(["grep", "-rlsF", "-e", text, *folders], capture_output=True, text=True, check=False).stdout


@pytest.mark.each_release
def test_kubectl_in_a_job_is_the_service_account_and_its_token_is_gone_with_the_job(accounts, tmp_path):
	make(accounts, f"{CORE}/serviceaccounts", USER)
	make(accounts, f"{CORE}/configmaps", "mine", data={"word": "hello"})
	make(accounts, f"{RBAC}/roles", "reader", rules=[{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["mine"], "verbs": ["get"]}])
	make(accounts, f"{RBAC}/rolebindings", "reader", roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
		subjects=[{"kind": "ServiceAccount", "name": USER, "namespace": NAMESPACE}])
	home = tmp_path / "home"
	home.mkdir()
	about = pwd.getpwnam(USER)
	os.chown(home, about.pw_uid, about.pw_gid)
	for folder in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
		folder.chmod(0o755)
	kubectl = " ".join(carry(shutil.which("kubectl"), home))
	ask = f"""test ! -e /usr/lib; stat -L -c '%a %u' {TOKEN}; echo $KUBECONFIG; env | grep -c '^KUBERNETES_SERVICE_'
		{kubectl} get configmap mine -o 'jsonpath={{.data.word}}'; echo; {kubectl} get secrets; cp {TOKEN} $HOME/copy
		until test -e $HOME/asked; do sleep 0.2; done"""
	with accounts.start("env", f"HOME={home}", "runuser", "-u", USER, "--", "env", f"HOME={home}", "KUBECONFIG=/nowhere", "srun", *OPTIONS,
			f"--k8s-service-account={USER}", "--k8s-mount-home", "sh", "-c", ask) as run:
		wait_for("the task to have asked", (home / "copy").exists, 120, lambda: accounts.run("squeue", "-a", "-o", "%i %T %r"))
		token = wait_for("the token", (home / "copy").read_text, 10)
		job = accounts.jobs()[-1]
		shown = accounts.run("scontrol", "-d", "show", "job", job["JobId"])
		alive = status_with(accounts, token)
		kept = files_with(accounts, token)
		(home / "asked").touch()
		out, err = run.communicate(timeout=60)
	assert out.splitlines() == [f"600 {about.pw_uid}", "/.slurm-k8s/kubeconfig", "2", "hello"], (out, err)
	assert err.count("is forbidden") == 1 and f'"{NAME}"' in err and f'in the namespace "{NAMESPACE}"' in err, err
	assert alive == 200 and token not in shown and not kept and files_with(accounts, f"serviceaccounts/{USER}/token"), (alive, kept)
	wait_no_reservation(accounts, int(job["JobId"]))
	wait_for("the token to be worth nothing", lambda: status_with(accounts, token) == 401, 60)
	assert not files_with(accounts, token)


@pytest.mark.parametrize("name, options, says, makes_job", [
	("root", OPTIONS, f"--k8s-service-account: ServiceAccount root is not allowed for user {USER}", True),
	("public-none", OPTIONS, "--k8s-service-account: on node n1 a volume cannot be mounted: ", True),
	("a/../b", OPTIONS, "--k8s-service-account (or SLURM_K8S_SERVICE_ACCOUNT): name a ServiceAccount of Kubernetes", False),
	(USER, PLAIN, "--k8s-service-account: its token is in the job's container: give --k8s-image, too", False),
], ids=("another's", "not there", "no name", "no image"))
def test_account_that_cannot_be_had_is_told_in_one_sentence(accounts, name, options, says, makes_job):
	before = len(accounts.jobs())
	done = accounts.run("srun", *options, f"--k8s-service-account={name}", "echo", "ran", user=USER, check=False, seconds=120)
	jobs = accounts.jobs()
	assert done.returncode and not done.stdout and len(jobs) - before == makes_job, done
	if not makes_job:
		assert done.stderr.count(says) == 1, done
		return
	assert jobs[-1]["JobState"] == "CANCELLED" and told(done, says, jobs[-1]), (done, jobs[-1])
	wait_no_reservation(accounts, int(jobs[-1]["JobId"]))


def test_a_step_has_the_account_of_its_job_or_none(accounts, tmp_path):
	batch = Batch(accounts, tmp_path, "srun sh -c 'test ! -e $KUBECONFIG && test ! -e /var/run/secrets && echo nobody'",
		"srun --k8s-service-account=public-a true || echo refused", "SLURM_K8S_SERVICE_ACCOUNT=public-a srun true || echo failed", options=OPTIONS)
	assert batch.wait_end() == ["nobody", "refused", "failed"], batch.err.read_text()
	said = batch.err.read_text()
	assert said.count("--k8s-service-account: give it to the sbatch, salloc or srun that makes the job, for all of its steps") == 1, said
	assert said.count("slurm-k8s: the job has no service account: give --k8s-service-account to the sbatch") == 1, said
