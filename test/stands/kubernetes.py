# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""A real Kubernetes in a folder: etcd, kube-apiserver, and nodes with containerd and kubelet.

Neither kube-controller-manager nor, unless a story starts it, kube-scheduler runs: Slurm schedules. Without
the former nobody removes the taint not-ready that admission gives to new nodes
and nobody makes service accounts, so those two admission plugins are off.
"""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys

from . import cgroup, image, pki, reserve
from .api import Api, ApiError
from .process import Daemon, run
from .waiting import StandError, wait_for

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
RBAC = os.path.join(TOP, "etc", "kubernetes-rbac.yaml")
SLURM_USER = "slurm-k8s"  # the certificate's name; its rights come from RBAC alone
SHARED_LABEL = "slurm-k8s.io/shared"

AUDIT_POLICY = {
	"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
	"rules": [
		{"level": "RequestResponse", "verbs": ["create"], "resources": [{"group": "", "resources": ["pods/binding"]}]},
		{"level": "RequestResponse", "verbs": ["delete", "deletecollection"]},
		{"level": "Request", "verbs": ["create", "patch"], "resources": [{"group": "", "resources": ["pods", "pods/resize"]}],
			"namespaces": ["slurm-k8s-jobs"]},
		{"level": "Request", "verbs": ["patch"], "resources": [{"group": "", "resources": ["pods/status", "nodes"]}]},
		{"level": "Metadata"},
	],
}

# Inside a node, over the host's folders of the same name: what of the stand is seen there.
NODE_FOLDERS = {
	"containerd": "/var/lib/containerd",
	"run": "/run/containerd",
	"kubelet": "/var/lib/kubelet",
	"cni": "/var/lib/cni",
	"pods": "/var/log/pods",
	"containers": "/var/log/containers",
	"slurm-k8s": "/run/slurm-k8s",
}


INOTIFY_INSTANCES = "/proc/sys/fs/inotify/max_user_instances"


def _allow_inotify(most=1024):
	"""The kernel gives a user 128 instances of inotify. A kubelet has six, its containerd one, a kube-apiserver two or
	three: six stands with two kubelets have a hundred before anything runs on them."""
	try:
		with open(INOTIFY_INSTANCES, "r+", encoding="utf-8") as file:
			if int(file.read()) < most:
				file.seek(0)  # the kernel takes no number elsewhere
				file.write(str(most))
	except OSError as error:
		print(f"test/cluster: stands side by side may lack inotify instances: {error}", file=sys.stderr)


def binaries(want=("etcd", "kube-apiserver", "kubelet")):
	"""The folder with Kubernetes' binaries; builds them first if need be."""
	done = subprocess.run([os.path.join(TOP, "test/kubernetes/build"), *want], stdout=subprocess.PIPE, text=True,
		check=False)
	if done.returncode:
		raise StandError("Kubernetes could not be built, see above; KUBEBUILDER_ASSETS may name a folder with binaries")
	return done.stdout.strip()


def _write(path, content):
	os.makedirs(os.path.dirname(path), exist_ok=True)
	with open(path, "w", encoding="utf-8") as file:
		file.write(content if isinstance(content, str) else json.dumps(content, indent=1) + "\n")
	return path


class Kubernetes:
	"""folder: the stand's. What it keeps between calls is in folder/kubernetes/."""

	SERVER = "kube-apiserver"

	def __init__(self, folder):
		self.folder = os.path.abspath(folder)
		self.home = os.path.join(self.folder, "kubernetes")
		self.pki = os.path.join(self.home, "pki")
		self.admin = os.path.join(self.home, "admin.kubeconfig")
		self.slurm = os.path.join(self.home, SLURM_USER + ".kubeconfig")
		self.audit = os.path.join(self.folder, "log", "audit.log")
		self.link = "sk8" + reserve.stand_id(folder)
		self.cgroup = "sk8-" + reserve.stand_id(folder)

	def daemon(self, name):
		return Daemon(self.folder, name)

	@property
	def state(self):
		with open(os.path.join(self.home, "state.json"), encoding="utf-8") as file:
			return json.load(file)

	# -- control plane

	def up(self):
		self.start()
		self.finish()

	def start(self):
		"""Returns while kube-apiserver is still starting."""
		bin_dir = binaries()
		client, peer, secure = reserve.ports(self.folder, 3)
		server = f"https://127.0.0.1:{secure}"
		_write(os.path.join(self.home, "state.json"), {"bin": bin_dir, "server": server})
		pki.authority(self.pki)
		pki.key(f"{self.pki}/sa.key")
		pki.certificate(self.pki, "apiserver", "/CN=kube-apiserver", ("IP:127.0.0.1", "DNS:localhost"))
		self.kubeconfig("admin", "/O=system:masters/CN=admin", self.admin)
		self.kubeconfig(SLURM_USER, f"/CN={SLURM_USER}", self.slurm)
		self.daemon("etcd").start([f"{bin_dir}/etcd", "--data-dir", f"{self.home}/etcd", "--unsafe-no-fsync",
			"--log-level=warn", "--listen-client-urls", f"http://127.0.0.1:{client}",
			"--advertise-client-urls", f"http://127.0.0.1:{client}", "--listen-peer-urls", f"http://127.0.0.1:{peer}",
			"--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}",
			"--initial-cluster", f"default=http://127.0.0.1:{peer}"])
		wait_for("etcd", lambda: self.daemon("etcd").check() and _answers(client), 30, self.daemon("etcd").hint)
		policy = _write(os.path.join(self.home, "audit-policy.json"), AUDIT_POLICY)
		self.daemon("kube-apiserver").start([f"{bin_dir}/kube-apiserver",
			f"--etcd-servers=http://127.0.0.1:{client}", "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
			f"--secure-port={secure}", f"--tls-cert-file={self.pki}/apiserver.crt",
			f"--tls-private-key-file={self.pki}/apiserver.key", f"--client-ca-file={self.pki}/ca.crt",
			"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
			"--disable-admission-plugins=ServiceAccount,TaintNodesByCondition", "--allow-privileged=true",
			"--service-cluster-ip-range=198.19.0.0/24", f"--service-account-key-file={self.pki}/sa.key",
			f"--service-account-signing-key-file={self.pki}/sa.key",
			"--service-account-issuer=https://kubernetes.default.svc", "--endpoint-reconciler-type=none",
			"--shutdown-watch-termination-grace-period=1s", "--shutdown-delay-duration=0s",
			"--kubelet-preferred-address-types=InternalIP", f"--kubelet-client-certificate={self.pki}/admin.crt",
			f"--kubelet-client-key={self.pki}/admin.key", "--profiling=false",
			f"--audit-policy-file={policy}", f"--audit-log-path={self.audit}", "--audit-log-maxsize=4096"])

	def finish(self):
		self.wait_ready()
		self.kubectl("apply", "-f", RBAC)

	def kubeconfig(self, name, subject, path):
		pki.certificate(self.pki, name, subject)
		pki.kubeconfig(path, self.pki, name, self.state["server"])
		return path

	def kubectl(self, *args):
		return run(["kubectl", f"--kubeconfig={self.admin}", *args])

	def api(self):
		return Api(self.admin)

	def wait_ready(self, seconds=90):
		api, server, etcd = self.api(), self.daemon("kube-apiserver"), self.daemon("etcd")

		def ready():
			etcd.check()
			server.check()
			return api.ready()
		wait_for("kube-apiserver", ready, seconds, server.hint)

	# -- nodes

	def fake_nodes(self, names, cpus, memory):
		"""Node objects that are Ready and behind which is nothing. memory in MiB."""
		api = self.api()
		amount = {"cpu": str(cpus), "memory": f"{memory}Mi", "pods": "110", "ephemeral-storage": "100Gi"}
		for name in names:
			api.post("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node",
				"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
					"kubernetes.io/arch": "amd64", SHARED_LABEL: "true"}}})
			api.patch(f"/api/v1/nodes/{name}/status", {"status": {"capacity": amount, "allocatable": amount,
				"conditions": [{"type": "Ready", "status": "True", "reason": "Fake", "message": "nothing runs here"}]}})

	def agent(self, name):
		"""What an agent on that node needs to know: the kubelet's credentials, and where its cgroups are."""
		return f"{self.node_home(name)}/kubelet.kubeconfig", f"/{self.cgroup}/{name}"

	def node(self, machine, pods):
		"""containerd and kubelet inside `machine`, whose folders node_setup() prepared. Returns when Ready. pods: how many it can have."""
		_allow_inotify()
		name, home, state = machine.name, self.node_home(machine.name), self.state
		number, = reserve.hosts(self.folder, 1)
		port, = reserve.ports(self.folder, 1)
		address = f"198.51.100.{number}"
		self._add_address(address)
		cgroup.create(f"{self.cgroup}/{name}")
		images = image.build(os.path.join(self.home, "images"))
		config = self.kubeconfig(f"kubelet-{name}", f"/O=system:nodes/CN=system:node:{name}", f"{home}/kubelet.kubeconfig")

		_write(f"{home}/cni.d/10-stand.conflist", {"cniVersion": "0.4.0", "name": "stand", "plugins": [
			{"type": "ptp", "ipMasq": False, "ipam": {"type": "host-local", "subnet": f"198.18.{number}.0/24"}}]})
		runtime = self.daemon(f"containerd-{name}").start(
			["containerd", "--config", _write(f"{home}/containerd.toml", _containerd_toml(home))], inside=machine)
		sock = f"{home}/run/containerd.sock"
		wait_for(f"containerd of {name}", lambda: runtime.check() and os.path.exists(sock) and
			_succeeds(["ctr", "--address", sock, "version"]), 30, runtime.hint)
		# The proof of what containers did. Importing an image is the first event: from then on none is missed.
		events = self.daemon(f"events-{name}").start(
			["ctr", "--address", "/run/containerd/containerd.sock", "--namespace", "k8s.io", "events"], inside=machine)
		for path in images:
			run(["ctr", "--address", sock, "--namespace", "k8s.io", "images", "import", path])
		wait_for(f"events of containerd of {name}", lambda: events.check() and os.path.getsize(events.log), 10, events.hint)

		settings = {**_kubelet_settings(f"{self.pki}/ca.crt", address, port, f"/{self.cgroup}/{name}"), "maxPods": pods,
			"staticPodPath": self.static_pods(name)}
		os.makedirs(settings["staticPodPath"], exist_ok=True)
		kubelet = self.daemon(f"kubelet-{name}").start([state["bin"] + "/kubelet",
			"--config", _write(f"{home}/kubelet.json", settings), "--kubeconfig", config,
			"--hostname-override", name, "--node-ip", address, "--node-labels", f"{SHARED_LABEL}=true"], inside=machine)
		api = self.api()

		def is_ready():
			kubelet.check()
			runtime.check()
			try:
				node = api.get(f"/api/v1/nodes/{name}")
			except ApiError:
				return False
			return any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"].get("conditions", []))
		wait_for(f"node {name}", is_ready, 60, kubelet.hint)

	def scheduler(self):
		"""kube-scheduler, which places the pods of default-scheduler until it is stopped. Returns its daemon."""
		found = self.daemon("kube-scheduler")
		return found.start([binaries(["kube-scheduler"]) + "/kube-scheduler", "--kubeconfig", self.admin, "--leader-elect=false",
			"--secure-port=0", "--profiling=false"])

	def driver(self, machine, devices):
		"""A DRA driver with so many devices on that node, for as long as that lasts: a kubelet may miss that one comes again at
		once. Returns the file that says what it prepares."""
		home, record = self.node_home(machine.name), os.path.join(self.node_home(machine.name), "driver.record")
		driver = self.daemon(f"driver-{machine.name}")
		if not driver.pid:
			driver.start([binaries(["test-driver"]) + "/test-driver", "--node", machine.name, "--kubeconfig", self.admin,
				"--devices", str(devices), "--record", record, "--cdi", f"{home}/cdi"], inside=machine)
		return record

	def device_plugin(self, machine, resource, first, devices):
		"""A device plugin of this resource with so many devices on that node, numbered from first on. Returns its daemon and the file
		that says which of them are not well, which SIGHUP makes it read."""
		name = resource.replace("/", "_")
		plugin, unhealthy = self.daemon(f"device-plugin-{machine.name}-{name}"), os.path.join(self.node_home(machine.name), "unhealthy." + name)
		if not plugin.pid:
			plugin.start([binaries(["test-device-plugin"]) + "/test-device-plugin", "--resource", resource, "--first", str(first),
				"--devices", str(devices), "--unhealthy", unhealthy], inside=machine)
		return plugin, unhealthy

	def node_home(self, name):
		return os.path.join(self.folder, "nodes", name)

	def static_pods(self, name):
		"""The folder whose files its kubelet runs as pods."""
		return os.path.join(self.node_home(name), "static-pods")

	def node_setup(self, name, cpus, memory):
		"""Shell commands for Machine.boot(): the mounts that make a node of its own out of the host."""
		home = self.node_home(name)
		lines = []
		for folder, path in NODE_FOLDERS.items():
			os.makedirs(os.path.join(home, folder), exist_ok=True)
			reserve.host_folder(path)
			lines.append(f"mount --bind '{home}/{folder}' {path};")
		for source, path in _hardware(f"{home}/hardware", cpus, memory):
			lines.append(f"mount --bind '{source}' {path};")
		lines.append("mount --make-rshared /;")
		return " ".join(lines)

	def _add_address(self, address):
		if not os.path.exists(f"/sys/class/net/{self.link}"):
			run(["ip", "link", "add", self.link, "type", "veth", "peer", "name", self.link + "p"])
			run(["ip", "link", "set", self.link + "p", "up"])
			run(["ip", "link", "set", self.link, "up"])
		run(["ip", "address", "add", f"{address}/32", "dev", self.link])

	def runtime_logs(self, names):
		"""What containers did on the nodes in names, one file each, written by containerd's event stream."""
		return [self.daemon(f"events-{name}").log for name in names]

	# -- the end

	def down(self):
		"""After the machines have been halted."""
		for name in ("kube-apiserver", "etcd"):
			daemon = self.daemon(name)
			daemon.stop(signal.SIGKILL)  # nothing of it is kept
			daemon.forget()
		if os.path.exists(f"/sys/class/net/{self.link}"):
			run(["ip", "link", "delete", self.link])
		if os.path.isdir(cgroup.BASE):
			cgroup.remove(self.cgroup)
		shutil.rmtree(os.path.join(self.home, "etcd"), ignore_errors=True)

	def left(self):
		found = [f"cgroup {path}" for path in cgroup.left(self.cgroup)]
		if os.path.exists(f"/sys/class/net/{self.link}"):
			found.append(f"link {self.link}")
		return found


def _answers(port):
	with socket.create_connection(("127.0.0.1", port), 1):
		return True


def _succeeds(argv):
	return subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
		check=False).returncode == 0


def _containerd_toml(home):
	overlay = subprocess.run(["stat", "-f", "-c", "%T", home], stdout=subprocess.PIPE, text=True, check=False).stdout
	# overlay on overlay does not work: there every container gets a copy.
	snapshotter = "native" if overlay.startswith("overlay") else "overlayfs"
	return f"""version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.internal.v1.opt", "io.containerd.snapshotter.v1.aufs",
  "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{image.PAUSE_IMAGE}"
  # without CAP_SYS_RESOURCE a sandbox could not lower its score and would not start
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  # known from containerd 1.7 on; before, containers do not see what a driver has prepared
  enable_cdi = true
  cdi_spec_dirs = ["{home}/cdi"]
  tolerate_missing_hugetlb_controller = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "{snapshotter}"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{home}/cni.d"
"""


def _kubelet_settings(authority, address, port, cgroup_root):
	return {
		"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
		"authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True},
			"x509": {"clientCAFile": authority}},
		"authorization": {"mode": "Webhook"},
		"address": address, "port": port, "healthzPort": 0, "readOnlyPort": 0,
		"containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
		"cgroupDriver": "cgroupfs", "cgroupRoot": cgroup_root, "failCgroupV1": False, "failSwapOn": False,
		"nodeStatusUpdateFrequency": "2s",
		"nodeStatusReportFrequency": "10s",  # with nothing to tell; five minutes otherwise
		"kubeAPIQPS": 200, "kubeAPIBurst": 400, "eventRecordQPS": 0,
		# no attach controller runs here, and no test is about a full disk
		"enableControllerAttachDetach": False,
		"evictionHard": {"memory.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%",
			"imagefs.available": "0%", "imagefs.inodesFree": "0%"},
		"imageGCHighThresholdPercent": 100, "imageGCLowThresholdPercent": 99,
		"volumePluginDir": "/var/lib/kubelet/volume-plugins", "resolvConf": "", "clusterDomain": "cluster.local",
	}


def _hardware(folder, cpus, memory):
	"""Files that tell of `cpus` cores and `memory` MiB: [(file, where the kernel tells of the real ones)].

	Slurm's config_overrides and this are the same thing on both sides: a node that
	claims more than the host has. kubelet reads its capacity from there (as lxcfs
	does it for containers) and really admits by it; limits are enforced as they are.
	"""
	shutil.rmtree(folder, ignore_errors=True)
	every = range(cpus)
	with open("/proc/cpuinfo", encoding="utf-8") as file:
		first = file.read().split("\n\n", 1)[0].splitlines()

	def block(number):
		known = {"processor": number, "core id": number, "physical id": 0, "siblings": cpus, "cpu cores": cpus}
		names = ((line, line.split(":")[0].strip()) for line in first)
		return "\n".join(f"{name}\t: {known[name]}" if name in known else line for line, name in names)
	with open("/proc/meminfo", encoding="utf-8") as file:
		real = dict(line.split(":", 1) for line in file.read().splitlines())
	amount = f"{memory * 1024} kB"
	real.update(MemTotal=" " + amount, MemFree=" " + amount, MemAvailable=" " + amount)
	result = [(_write(f"{folder}/cpuinfo", "\n\n".join(map(block, every)) + "\n\n"), "/proc/cpuinfo"),
		(_write(f"{folder}/meminfo", "".join(f"{k}:{v}\n" for k, v in real.items())), "/proc/meminfo")]
	# Without a topology: kubelet would pin its cgroup to the cores it names, and the kernel has fewer.
	for number in every:
		_write(f"{folder}/cpu/cpu{number}/online", "1\n")
	for file in ("online", "possible", "present"):
		_write(f"{folder}/cpu/{file}", f"0-{cpus - 1}\n")
	result.append((f"{folder}/cpu", "/sys/devices/system/cpu"))
	if os.path.isdir("/sys/devices/system/node"):
		os.makedirs(f"{folder}/node")
		result.append((f"{folder}/node", "/sys/devices/system/node"))
	return result
