// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/settings.h"

#include <algorithm>
#include <map>
#include <set>

#include "lib/base/http_listener.h"
#include "lib/base/text.h"
#include "lib/core/gres.h"
#include "lib/core/names.h"
#include "lib/core/placement.h"
#include "lib/core/pod_devices.h"
#include "lib/core/pod_template.h"
#include "lib/kube/objects.h"

namespace sk8::core {

// Tables are leaked: no static destructors in slurmctld.

static const Schema<AllowSettings> &allow_schema()
{
	using A = AllowSettings;
	static const auto *schema = new Schema<A>{
		field("account", &A::account, "Accounts that a pod may name instead of the mapped one; * and ? match."),
		field("partition", &A::partition, "Partitions that a pod may name."),
		field("qos", &A::qos, "QOS that a pod may name."),
		field("reservation", &A::reservation, "Reservations that a pod may name."),
		field("licenses", &A::licenses, "License requests that a pod may make, as the whole text of the annotation."),
	};
	return *schema;
}

static const Schema<NamespaceSettings> &namespace_schema()
{
	using N = NamespaceSettings;
	static const auto *schema = new Schema<N>{
		field("match", &N::match, "Namespace, or a pattern with * and ?. The first entry that matches counts; pods of a namespace without one are refused.")
			.required().not_empty(),
		field("user", &N::user, "Slurm user of the jobs. Must be known on the controller.").required().not_empty(),
		field("account", &N::account, "Account of the jobs.").default_text("the user's default account"),
		field("partition", &N::partition, "Partition of the jobs.").default_text("the default partition"),
		field("qos", &N::qos, "QOS of the jobs.").default_text("the association's default QOS"),
		object("allow", &N::allow, allow_schema(), "What a pod's annotations may choose beyond that. All else that a pod claims is refused."),
		one_of("barePods", &N::bare_pods, {{"fail", N::BarePods::fail}, {"resubmit", N::BarePods::resubmit}},
		       "What becomes of a pod that no controller makes anew when Slurm preempts its job, or sets the job's node DOWN. fail: it ends. resubmit: when its last process is gone it is made again under its name, queues anew, and its job keeps its age, and a priority that it was given; needs etc/kubernetes-resubmit.yaml. A pod with the annotation slurm-k8s.io/requeue: \"false\" ends all the same."),
	};
	return *schema;
}

static std::string bad_selector(const std::string &text)
{
	auto parsed = parse_selector(text);
	return parsed ? "" : "is no label selector, use for example slurm-k8s.io/shared=true";
}

template <class S>
static auto sharing_field(const char *what)
{
	return one_of("sharing", &S::sharing, {{"none", Sharing::none}, {"dedicated", Sharing::dedicated}, {"mixed", Sharing::mixed}}, what);
}

static const Schema<NodeGroupSettings> &node_group_schema()
{
	using G = NodeGroupSettings;
	static const auto *schema = new Schema<G>{
		field("selector", &G::selector, "Label selector of the group's nodes; nodes.selector must take them, too.")
			.required().not_empty().check(bad_selector),
		sharing_field<G>("What nodes.sharing is for these nodes."),
	};
	return *schema;
}

static std::string bad_optional_selector(const std::string &text)
{
	return text.empty() ? "" : bad_selector(text);
}

static const Schema<ExclusiveSettings> &exclusive_schema()
{
	using E = ExclusiveSettings;
	static const auto *schema = new Schema<E>{
		field("selector", &E::selector, "Label selector; nodes.selector must take these nodes, too. They have the features k8s.shared and k8s.exclusive in Slurm. Needs PrEpPlugins=prep/script,prep/k8s in slurm.conf, and the right create on pods/eviction.")
			.default_text("no node").check(bad_optional_selector),
		field("timeout", &E::timeout, "So long a job waits, CONFIGURING, for the pods of its nodes to go; PodDisruptionBudgets hold, and an eviction that one refuses is tried again until then. A batch job goes back into the queue then, srun and salloc end, and the node takes pods again; for as long after that no such job is tried there while pods are left.")
			.range(std::chrono::seconds(1), std::chrono::hours(24)),
		field("idle", &E::idle, "So long after the last such job of a node Kubernetes places no pods there, so that the next one finds it empty.")
			.range(std::chrono::seconds(0), std::chrono::hours(24)),
		field("evictBarePods", &E::bare_pods, "Whether pods that no controller makes anew are evicted, too. Else a node with one is not to be had."),
	};
	return *schema;
}

static constexpr std::size_t max_groups = 64;

static std::string bad_label_keys(const std::vector<std::string> &keys)
{
	static constexpr std::size_t most = 64, longest = 317; // of a key: a DNS subdomain, '/', a word
	if (keys.size() > most)
		return "has " + std::to_string(keys.size()) + " entries, use at most 64";
	for (const auto &key : keys)
		if (key.empty() || key.size() > longest || key.find_first_not_of(
			"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./*?") != key.npos)
			return "has '" + one_line(key, 64) + "', which is no key of a label, use for example topology.kubernetes.io/zone";
	return "";
}

static const Schema<NodeSettings> &node_schema()
{
	using N = NodeSettings;
	static const auto *schema = new Schema<N>{
		field("selector", &N::selector, "Label selector of the Kubernetes nodes that Slurm shares. A Slurm node is the Kubernetes node of the same name.")
			.default_text("all nodes").check(bad_selector),
		field("names", &N::names, "Slurm names of shared nodes that take no job after a start of slurmctld for which there is no saved ledger, until Kubernetes has told which pods run there. If none is named all of Slurm's nodes do, for 30 s at most. If the ledger is there and damaged, it is these too, or all nodes if none is named, without a limit. Where sharing is mixed, or that of a group, they are closed for 5 s at most if there is a whole ledger: it lacks what came since."),
		sharing_field<N>("How kube-scheduler is kept off what Slurm's jobs use. none: not at all; Slurm gives nobody what pods use, but kube-scheduler may put pods where Slurm's jobs run. dedicated: the shared nodes have the taint slurm-k8s.io/dedicated=slurm:NoSchedule, so that only pods that go through Slurm, or tolerate it, come there; a job with a container (--k8s-image) has a pod there as with mixed. mixed: each of Slurm's own jobs there holds a reservation pod with its cores and its memory, and is launched when the kubelet has admitted that; needs PrEpPlugins=prep/script,prep/k8s in slurm.conf."),
		list("groups", &N::groups, node_group_schema(), "Shared nodes with another sharing. The first group that a node is in counts; nodes in none have nodes.sharing.", max_groups),
		field("features", &N::features, "Keys of labels; * and ? match. A shared node has each label with such a key as a feature in Slurm, k8s.KEY.VALUE with each dot of the key written twice, for --constraint: nvidia.com/gpu.product=A100 is k8s.nvidia..com/gpu..product.A100. It follows the label at once, without a reconfigure. Features that Slurm's own configuration gives a node stay. A node has at most 64 of these, the first by name.")
			.default_text("none").check(bad_label_keys),
		field("gateTimeout", &N::gate_timeout, "mixed, and of jobs with a container: how long a job waits, CONFIGURING, for the kubelets of its nodes, once these are up (power saving). Then, or at once if a kubelet has no room, a batch job goes back into the queue; srun and salloc try until then, and end.")
			.range(std::chrono::seconds(1), std::chrono::minutes(5)),
		object("exclusive", &N::exclusive, exclusive_schema(), "Nodes that a job of Slurm's own may have without others' pods, by --constraint=k8s.exclusive: pods there are evicted before it is launched. See sharing.md."),
	};
	return *schema;
}

static std::string bad_namespace(const std::string &name)
{
	for (char c : name)
		if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'))
			return "is no namespace, use small letters, digits and '-'";
	return name.size() > 63 ? "is no namespace, use 1 to 63 characters" : "";
}

static const Schema<SharedReservationSettings> &shared_reservation_schema()
{
	using S = SharedReservationSettings;
	static const auto *schema = new Schema<S>{
		field("maxCpus", &S::max_cpus, "Jobs that have at most so many CPUs of a node, and no GRES, share one pod there, whose requests grow and shrink in place with them. 0: each job has a pod of its own. Where the API server or a kubelet cannot resize pods in place (Kubernetes before 1.34), each has one, too. Needs the right patch on pods/resize, see kubernetes-reservations.yaml.")
			.range(0, 1'000'000),
	};
	return *schema;
}

static std::string not_absolute(const std::string &path)
{
	return path.starts_with('/') ? "" : "is no absolute path, use one that starts with \"/\"";
}

// The first one that is wrong.
static std::function<std::string(const std::vector<std::string> &)> each(std::string (*bad)(const std::string &))
{
	return [bad](const std::vector<std::string> &all) {
		const auto wrong = std::ranges::find_if(all, [&](const std::string &one) { return !bad(one).empty(); });
		return wrong == all.end() ? "" : "has '" + one_line(*wrong, 64) + "', which " + bad(*wrong);
	};
}

static std::string bad_host_path(const std::string &path)
{
	return path.starts_with('/') && path.size() > 1 && !path.ends_with('/') ? "" : "is no absolute path without a / at its end";
}

static const Schema<TemplateSettings> &template_schema()
{
	using T = TemplateSettings;
	static const auto *schema = new Schema<T>{
		field("allow", &T::allow, "Users may give a template (--k8s-template) for the pods of their jobs: volumes, sidecars, init containers. All of it runs as the job's user and group, without capabilities, in the namespace of the reservation pods."),
		field("configMaps", &T::config_maps, "ConfigMaps of that namespace that templates may name. {user} and {account} stand for those of the job, letter by letter; in names without them * and ? match. A name with both needs a - or . between them, and is nobody's whose user or account has that in it, too: as {user}-{account} user a-b of account c and user a of account b-c would have the same. Use {account} only where Slurm enforces associations (AccountingStorageEnforce): elsewhere everybody may name any account, and slurm-k8s check says so.")
			.check(each(bad_pattern)),
		field("secrets", &T::secrets, "The same of Secrets, as volumes, in the environment, and for pulling images. What configMaps says of {user} and {account} counts here, too.")
			.check(each(bad_pattern)),
		field("claims", &T::claims, "The same of PersistentVolumeClaims. What configMaps says of {user} and {account} counts here, too. Only the container in which tasks run may have them.")
			.check(each(bad_pattern)),
		field("resourceClaims", &T::resource_claims, "The same of ResourceClaims and ResourceClaimTemplates (Dynamic Resource Allocation), for devices in the containers of a job: it must have as many by --gres, of those GRES for which resources has a deviceClass, and the claim gets just these. What configMaps says of {user} and {account} counts here, too. On dedicated nodes alone, see resources[].deviceClass.")
			.check(each(bad_pattern)),
		field("hostPaths", &T::host_paths, "Folders of the nodes that templates may name, just as they stand here. Only the container in which tasks run may have them, and there its user has the rights that he has on the node to what is in them; folders above them do not count.")
			.check(each(bad_host_path)),
	};
	return *schema;
}

static const Schema<ReservationSettings> &reservation_schema()
{
	using R = ReservationSettings;
	static const auto *schema = new Schema<R>{
		field("namespace", &R::ns, "Namespace of the reservation pods. Nobody else should be allowed to create pods there. Those of jobs that run while it is changed stay in the former one, where nobody deletes them: slurm-k8s check names them.")
			.not_empty().check(bad_namespace),
		field("image", &R::image, "Their image: it does nothing until it is ended, as Kubernetes' own pause does.").not_empty(),
		field("priorityClass", &R::priority_class, "Their PriorityClass.").default_text("none"),
		field("imageTimeout", &R::image_timeout, "How long a job with --k8s-image waits until its image is there and its container runs. A batch job goes back into the queue then.")
			.range(std::chrono::seconds(1), std::chrono::hours(24)),
		field("pausePath", &R::pause_path, "On the nodes, the program that keeps the containers of jobs (--k8s-image) alive: that of package slurm-k8s-spank.")
			.check(not_absolute),
		field("devices", &R::devices, "On shared nodes that are not mixed, too, each of Slurm's own jobs with GRES that resources names holds a pod there that requests these and no cores, so that no kubelet gives a pod a GPU that a job has. Needs PrEpPlugins=prep/script,prep/k8s in slurm.conf, and kubernetes-reservations.yaml. false: only where pods and Slurm's own jobs never both have devices of one node."),
		one_of("eviction", &R::eviction, {{"ignore", R::OnEviction::ignore}, {"requeue", R::OnEviction::requeue}, {"cancel", R::OnEviction::cancel}},
		       "What becomes of a job that runs when somebody evicts, preempts or deletes a pod of it. ignore: the job goes on, and the pod is made again; but one that has a container there (--k8s-image) loses the files of its tasks, and fares as with requeue. requeue: it goes back into the queue; one that cannot, as those of srun and salloc, is cancelled, as with Slurm's PreemptMode=REQUEUE. cancel: it is cancelled. Its system comment says why. What happens to pods because their node is not heard of, is shut down or is deleted, or because its kubelet starts again, is no eviction."),
		object("shared", &R::shared, shared_reservation_schema(), "Many small or short jobs in one pod for each node: a pod costs time at the start and the end of a job, and one of the pods that its kubelet takes."),
		object("templates", &R::templates, template_schema(), "What users may have in the pods of their jobs besides a container."),
		field("serviceAccounts", &R::service_accounts, "ServiceAccounts of that namespace that users may give to the containers of their jobs (--k8s-service-account). {user} and {account} stand for those of the job, letter by letter; in names without them * and ? match, and one with both is as reservations.templates.configMaps says. Use {account} only where Slurm enforces associations (AccountingStorageEnforce): elsewhere everybody may name any account, and slurm-k8s check says so.")
			.check(each(bad_pattern)),
	};
	return *schema;
}

static const Schema<PriorityClassSettings> &priority_class_schema()
{
	using P = PriorityClassSettings;
	static const auto *schema = new Schema<P>{
		field("name", &P::name, "Name of a PriorityClass.").required().not_empty(),
		field("nice", &P::nice, "Slurm's nice value of its pods' jobs; a smaller one starts earlier.").required()
			.range(-1'000'000, 1'000'000),
	};
	return *schema;
}

static const Schema<PodSettings> &pod_schema()
{
	using P = PodSettings;
	static const auto *schema = new Schema<P>{
		milli_cpu("defaultCpu", &P::default_milli_cpu, "CPUs of a pod whose containers request none. Jobs always have whole cores."),
		bytes("defaultMemory", &P::default_memory_bytes, "Memory of a pod whose containers request none. 0: what the partition gives a job that asks for none.")
			.default_text("256Mi"),
		field("bindTimeout", &P::bind_timeout, "How long a Binding is tried before the job is ended and made anew.")
			.range(std::chrono::seconds(1), std::chrono::hours(1)),
		field("killGrace", &P::kill_grace, "Longest time a pod's containers get between SIGTERM and SIGKILL when its job ended first.")
			.range(std::chrono::seconds(1), std::chrono::hours(24)),
		list("priorityClasses", &P::priority_classes, priority_class_schema(), "What a pod's PriorityClass means for its job."),
	};
	return *schema;
}

static constexpr std::size_t max_device_lists = 4096; // one for each node

static std::string bad_resource(const std::string &name)
{
	const std::size_t slash = name.find('/');
	return slash == 0 || slash == name.npos || slash + 1 == name.size() || name.size() > 317
		       ? "is no extended resource, use for example nvidia.com/gpu"
		       : "";
}

static std::string bad_gres(const std::string &name)
{
	return name.empty() ? "is empty, use for example gpu" : bad_gres_word(name);
}

static std::string bad_device(const std::string &id)
{
	return id.empty() || id.size() > max_device_id ? "is no ID of a device, use 1 to 128 characters" : "";
}

static const Schema<DeviceSettings> &device_schema()
{
	using D = DeviceSettings;
	static const auto *schema = new Schema<D>{
		field("selector", &D::selector, "Label selector of the nodes that have these devices, for example kubernetes.io/hostname=node1. The first entry that takes a node counts.")
			.default_text("all nodes").check(bad_selector),
		field("first", &D::first, "Slurm's index, among all devices of the GRES on the node, of the first device: not 0 where those of another type come first in gres.conf.")
			.range(0, max_gres_devices),
		field("ids", &D::ids, "IDs of the devices, as the device plugin names them, in the order in which gres.conf has them. The annotation slurm-k8s.io/devices of the node lists them.")
			.default_text("as the agent finds them: NVIDIA's by their minor numbers, others by their IDs, numbers in these by value").check(each(bad_device)),
	};
	return *schema;
}

// rdma/hca is k8s:rdma_hca
static void name_type_by_resource(ResourceSettings &r)
{
	if (r.gres != k8s_gres || !r.type.empty())
		return;
	r.type = r.kubernetes;
	std::ranges::replace(r.type, '/', '_');
}

static std::string bad_class(const std::string &name)
{
	return name.empty() || name.size() > kube::max_name ? "is no name of a DeviceClass, use for example gpu.nvidia.com" : "";
}

static std::string bad_file(const std::string &file)
{
	return file == no_device_file ? "" : bad_device_file(file);
}

static void names_one_thing(const ResourceSettings &r, const Place &place)
{
	if (r.kubernetes.empty() == r.device_class.empty())
		place.error("kubernetes", r.kubernetes.empty() ? "has neither kubernetes nor deviceClass; name one of them"
							       : "and deviceClass are two things; make two entries");
	else if (r.kubernetes.empty() && r.gres == k8s_gres)
		place.error("deviceClass", "cannot be GRES k8s, which is for extended resources");
	else if (!r.kubernetes.empty() && !r.index.empty())
		place.error("index", "is for a deviceClass; use devices for an extended resource");
	else if (!r.kubernetes.empty() && !r.type_attribute.empty())
		place.error("typeAttribute", "is for a deviceClass; use typeLabel for an extended resource");
	else if (!r.kubernetes.empty() && !r.file.empty())
		place.error("file", "is for a deviceClass; leave it out of an extended resource");
}

static void type_is_a_word(const ResourceSettings &r, const Place &place)
{
	names_one_thing(r, place);
	if (const std::string bad = bad_gres_word(r.type); !bad.empty())
		place.error("kubernetes", "needs a type beside it: \"" + one_line(r.type, 80) + "\" " + bad);
}

static const Schema<ResourceSettings> &resource_schema()
{
	using R = ResourceSettings;
	static const auto *schema = &(new Schema<R>{
		field("kubernetes", &R::kubernetes, "Name of the extended resource; or there is a deviceClass.")
			.default_text("none").check(bad_resource),
		field("deviceClass", &R::device_class, "Name of the DeviceClass (Dynamic Resource Allocation, resource.k8s.io/v1): pods that claim devices of it get those that Slurm has chosen. Not with sharing: mixed.")
			.default_text("none").check(bad_class),
		field("index", &R::index, "Attribute of the class's devices that is their index in Slurm, for example gpu.example.com/index; without a domain it is the driver's.")
			.default_text("index, else minor, else the number that the device's name ends with"),
		field("file", &R::file, "Device files of the class: %d, at the end, is a device's index, for example /dev/nvidia%d. slurm-k8s gres writes File= lines for gres.conf by it. none: it writes none.")
			.default_text("/dev/nvidia%d for gpu.nvidia.com without index, else none").check(bad_file),
		field("gres", &R::gres, "Name of the GRES, as in GresTypes of slurm.conf. k8s is for devices that only Kubernetes knows, each resource with a type of its own; doc/gres.md.").required().check(bad_gres),
		field("type", &R::type, "Type of the GRES, as in Gres= of the nodes.").default_text("any; of k8s the name of the resource with _ for /, for example rdma_hca").check(bad_gres_word),
		list("devices", &R::devices, device_schema(), "Which of Slurm's devices those are that a device plugin hands out, where the agent tells which pods have which: needed where their order there is another than Slurm's.", max_device_lists),
		field("typeLabel", &R::type_label, "Label of nodes whose value, in small letters, is the type for slurm-k8s gres and check, for example nvidia.com/gpu.product. Pods ask for type all the same.")
			.default_text("none"),
		field("typeAttribute", &R::type_attribute, "Attribute of the deviceClass's devices whose value, in small letters, is their type for slurm-k8s gres and check, for example productName; without a domain it is the driver's. Pods ask for type all the same.")
			.default_text("none"),
		one_of("missing", &R::missing, {{"mask", R::Missing::mask}, {"all", R::Missing::all}, {"ignore", R::Missing::ignore}},
		       "What becomes of devices that Slurm has on a node and its kubelet has not (status.allocatable), because they are gone or not well. mask: so many are kept from Slurm's jobs, until the kubelet has them again. all: the same, and of a node whose kubelet does not know the resource (or that no driver tells of) all are; Slurm's number is the most that a node may ever have then. ignore: nothing; for nodes whose device plugin hands out only a part of what Slurm has."),
	})->complete(name_type_by_resource).check(type_is_a_word);
	return *schema;
}

static const Schema<NotReadySettings> &not_ready_schema()
{
	using N = NotReadySettings;
	static const auto *schema = new Schema<N>{
		field("after", &N::after, "How long the node's condition Ready may be False or Unknown before. Kubernetes itself waits about as long before it says Unknown.")
			.range(std::chrono::seconds(1), std::chrono::hours(24)),
		one_of("action", &N::action, {{"drain", N::Action::drain}, {"down", N::Action::down}, {"ignore", N::Action::ignore}},
		       "drain: Slurm starts no more jobs there, and those that run go on; slurmd may be well. down: Slurm ends or requeues them, as of a node that is DOWN."),
	};
	return *schema;
}

static std::string bad_conditions(const std::vector<std::string> &types)
{
	for (const auto &type : types)
		if (type.empty() || type == "Ready" || type.find_first_of(" \t:,") != type.npos)
			return "\"" + one_line(type, 64) + "\" is no such type, use for example DiskPressure; for Ready there is notReady";
	return "";
}

static const Schema<StateSettings> &state_schema()
{
	using S = StateSettings;
	static const auto *schema = new Schema<S>{
		one_of("cordon", &S::cordon, {{"drain", S::OnCordon::drain}, {"ignore", S::OnCordon::ignore}},
		       "What Slurm does with a node that is cordoned in Kubernetes (kubectl cordon, kubectl drain). drain: it is drained until it is uncordoned."),
		object("notReady", &S::not_ready, not_ready_schema(), "What Slurm does with a node whose kubelet is not well."),
		field("conditions", &S::conditions, "Types of node conditions that drain the node in Slurm while they are True, as DiskPressure or those of node-problem-detector.")
			.check(bad_conditions),
		one_of("slurm", &S::slurm, {{"cordon", S::OnSlurm::cordon}, {"ignore", S::OnSlurm::ignore}},
		       "What Kubernetes does with a node that Slurm gives no jobs: DRAIN, DOWN or FAIL, by whomever but us, or a reservation for maintenance. cordon: it is cordoned until Slurm uses it again."),
	};
	return *schema;
}

static const Schema<ApiSettings> &api_schema()
{
	using A = ApiSettings;
	static const auto *schema = new Schema<A>{
		field("inFlight", &A::in_flight, "Requests that the API server is given at once, watches apart. One is kept for Bindings and deletes; conditions and events get a third.")
			.range(1, 100),
		field("requestsPerSecond", &A::requests_per_second, "Requests that it is given per second in the long run; twice as many at once after a quiet time. When they run short conditions and events wait first, Bindings and deletes last.")
			.range(1, 10'000),
	};
	return *schema;
}

static std::string bad_cluster_name(const std::string &name)
{
	for (char c : name)
		if (!(isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.'))
			return "is no cluster name, use letters, digits, '-', '_' and '.'";
	return name.empty() || name.size() > 63 ? "is no cluster name, use 1 to 63 characters" : "";
}

bool has_device_class(const std::vector<ResourceSettings> &resources)
{
	return std::ranges::any_of(resources, [](const ResourceSettings &r) { return !r.device_class.empty(); });
}

// A job's own devices are reserved there by a pod's extended resources, and no claim stands for them yet.
static void classes_are_not_mixed(const ClusterSettings &c, const Place &place)
{
	if (c.nodes.any(Sharing::mixed) && has_device_class(c.resources))
		place.error("resources", "has a deviceClass, which cannot be had together with sharing: mixed yet; use dedicated");
}

// A job's pod requests one resource for what the job has of a GRES and type, and of k8s nothing else says which one that is.
static void types_differ(const ClusterSettings &c, const Place &place)
{
	std::map<std::string, const ResourceSettings *> seen; // by type
	for (std::size_t i = 0; i < c.resources.size(); i++) {
		const ResourceSettings &r = c.resources[i];
		if (r.gres != k8s_gres)
			continue;
		const auto [first, fresh] = seen.try_emplace(r.type, &r);
		const auto list = std::ranges::find(place.node().members, "resources", &YamlMember::key);
		if (!fresh && list != place.node().members.end() && list->value.items.size() == c.resources.size())
			place.member(*list).item(i).error("type", "k8s:" + one_line(r.type, 80) + " is " + one_line(first->second->kubernetes, 128) + " already; give " +
				one_line(r.kubernetes, 128) + " another type");
	}
}

// Which of Slurm's devices a claim is for only a deviceClass says.
static void claims_have_a_class(const ClusterSettings &c, const Place &place)
{
	if (!c.reservations.templates.resource_claims.empty() && !has_device_class(c.resources))
		place.error("reservations", "has templates.resourceClaims, and no entry of resources has a deviceClass: nobody knows of which GRES they are");
}

// Pods that have this one are jobs' own, and have none of theirs.
static void schedulers_are_not_ours(const ClusterSettings &c, const Place &place)
{
	if (std::ranges::find(c.scheduler_names, names::reservation_scheduler) != c.scheduler_names.end())
		place.error("schedulerNames", "has " + std::string(names::reservation_scheduler) + ", which the pods of Slurm's own jobs have; use another name");
}

static void is_whole(const ClusterSettings &c, const Place &place)
{
	claims_have_a_class(c, place);
	schedulers_are_not_ours(c, place);
	classes_are_not_mixed(c, place);
	types_differ(c, place);
}

static const Schema<ClusterSettings> &cluster_schema()
{
	using C = ClusterSettings;
	static const auto *schema = &(new Schema<C>{
		field("name", &C::name, "Name of the Kubernetes cluster; part of every job's admin_comment, so do not change it while pods run.")
			.required().check(bad_cluster_name),
		field("kubeconfig", &C::kubeconfig, "Path of the kubeconfig; must be readable by SlurmUser, and by nobody else.")
			.check(not_absolute)
			.default_text("the in-cluster service account"),
		field("context", &C::context, "Context of the kubeconfig.").default_text("its current-context"),
		field("schedulerNames", &C::scheduler_names, "Pods with one of these in spec.schedulerName are placed by Slurm.")
			.not_empty(),
		list("namespaces", &C::namespaces, namespace_schema(), "Who pods are in Slurm, by their namespace."),
		object("nodes", &C::nodes, node_schema(), "Which nodes are shared."),
		object("reservations", &C::reservations, reservation_schema(), "The pods that stand for Slurm's own jobs: on nodes with sharing: mixed, for containers (--k8s-image) on dedicated ones, and for devices on all that are shared."),
		list("resources", &C::resources, resource_schema(), "Which extended resource of pods is which GRES of Slurm. Pods for Slurm get those that are here; one that asks for another is refused. A job of Slurm's own requests those that are here by its reservation pod, see reservations.devices. Of pods that others place nvidia.com/gpu and amd.com/gpu count as gpu, unless they are here, and others not.", max_gres),
		object("pods", &C::pods, pod_schema(), "How pods become jobs."),
		object("state", &C::state, state_schema(), "What a node's state on one side means on the other, for the nodes that are shared. What an administrator did is never undone."),
		object("api", &C::api, api_schema(), "How much the API server is asked for."),
	})->check(is_whole);
	return *schema;
}

static std::string bad_listen(const std::string &text)
{
	auto address = parse_loopback(text);
	return address ? "" : address.error().message;
}

static const Schema<MetricsSettings> &metrics_schema()
{
	using M = MetricsSettings;
	static const auto *schema = new Schema<M>{
		field("listen", &M::listen, "Address and port where Prometheus finds /metrics, see slurm-k8s-metrics(7). Only addresses of this machine are accepted.")
			.default_text("none, metrics are off").check(bad_listen),
	};
	return *schema;
}

static const Schema<TokenSettings> &token_schema()
{
	using T = TokenSettings;
	static const auto *schema = new Schema<T>{
		field("partitions", &T::partitions, "Jobs that are submitted to these partitions (* and ? match) get the GRES k8scpu and k8smemory that their CPUs and MB of memory make, unless they ask for some themselves. All nodes of such a partition must have both in slurm.conf.")
			.default_text("none"),
	};
	return *schema;
}

static void names_differ(const Settings &s, const Place &place)
{
	std::set<std::string> seen;
	for (const auto &c : s.clusters)
		if (!seen.insert(c.name).second)
			place.error("clusters", "two clusters are named \"" + one_line(c.name, 64) + "\", names must differ");
}

static const Schema<Settings> &schema()
{
	static const auto *table = new Schema<Settings>(
		Schema<Settings>{
			list("clusters", &Settings::clusters, cluster_schema(), "The Kubernetes clusters that share nodes with this Slurm.", 16)
				.required().not_empty(),
			object("metrics", &Settings::metrics, metrics_schema(), "Numbers for Prometheus."),
			object("tokens", &Settings::tokens, token_schema(), "GRES that stand for CPUs and memory, for jobs written for ACK."),
		}
			.check(names_differ));
	return *table;
}

Result<Settings> load_settings(const std::string &path, std::uint32_t slurm_uid)
{
	return load_config(path, slurm_uid, schema());
}

Result<Settings> parse_settings(const std::string &text, const std::string &file_name)
{
	return parse_config(text, file_name, schema());
}

std::vector<FieldDoc> describe_settings()
{
	return describe(schema());
}

} // namespace sk8::core
