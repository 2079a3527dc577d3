// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Nodes whose kubelets admit what fits, an API server and a Slurm as models behind the
// reservations controller's ports. Answers and news come when run() delivers them.
#ifndef SK8_TEST_RESERVATION_WORLD_H
#define SK8_TEST_RESERVATION_WORLD_H

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "lib/base/quantity.h"
#include "lib/core/reservations.h"
#include "test/unit/core/world.h"

namespace sk8::core::test {

class ReservationWorld : public ReservationPort, public NativePort {
public:
	explicit ReservationWorld(const std::function<void(ClusterSettings &)> &configure = {})
	{
		settings.name = "c";
		settings.nodes.selector = "shared=true";
		settings.nodes.sharing = Sharing::mixed;
		settings.nodes.gate_timeout = Millis(20'000);
		if (configure)
			configure(settings);
		restart();
	}

	// ---- people and daemons ----
	NativeJobPtr job(std::uint32_t id, std::uint32_t cpus, std::vector<std::string> on = {"n1"}, bool requeues = true)
	{
		auto j = std::make_shared<NativeJob>();
		j->ref = {id, 1000 + id};
		j->requeues = requeues;
		j->account = "physics & co";
		for (const auto &node : on)
			j->shares.push_back({node, cpus, 100});
		return j;
	}
	// Somebody else's pod; true: its kubelet has room.
	bool foreign(const std::string &name, const std::string &ns, std::int64_t cpus, const std::string &node = "n1",
		     const std::map<std::string, std::int64_t> &extended = {})
	{
		ForeignPod p;
		p.meta = meta(ns, name);
		p.node_name = node;
		p.milli_cpu = cpus * 1000;
		p.extended = extended;
		return appear(std::move(p));
	}
	// What becomes of a pod that is there.
	void change_pod(const std::string &name, const std::function<void(ForeignPod &)> &how)
	{
		how(pods.at(name));
		tell(name);
	}
	// Kubernetes hears of the node's kubelet, or does not.
	void set_ready(const std::string &name, bool ready)
	{
		auto n = std::make_shared<kube::Node>(*nodes->find(name));
		n->ready = ready;
		nodes->change(n);
		controller->nodes_changed();
	}
	// Slurm saves its power, or has woken it: no news to the controller.
	void set_asleep(const std::string &name, bool sleeps)
	{
		if (sleeps)
			asleep.insert(name);
		else
			asleep.erase(name);
		tell_slurm_nodes();
	}
	void set_strict_groups(const std::string &name, bool strict)
	{
		auto n = std::make_shared<kube::Node>(*nodes->find(name));
		n->strict_groups = strict;
		nodes->change(n);
		controller->nodes_changed();
	}
	// kubectl delete node; its kubelet and its pods are what they were. Also over restart().
	void delete_node(const std::string &name)
	{
		deleted.insert(name);
		nodes->remove(name);
		controller->nodes_changed();
	}
	// ... and comes back, as another object, on which nobody has written anything.
	void register_node(const std::string &name)
	{
		deleted.erase(name);
		auto n = node_of(name);
		n->meta.uid = name + " again";
		nodes->change(n);
		controller->nodes_changed();
	}
	void label(const std::string &name, const std::string &key, const std::string &value)
	{
		auto n = std::make_shared<kube::Node>(*nodes->find(name));
		n->meta.labels[key] = value;
		nodes->change(n);
		controller->nodes_changed();
	}
	// The agent there tells which of its four devices this pod has; nobody has any if there is no such pod.
	void tell_devices(const std::string &name, const std::string &pod, const std::string &positions,
			  const std::string &resource = "example.com/card")
	{
		auto n = std::make_shared<kube::Node>(*nodes->find(name));
		const std::string uid = pods.contains(pod) ? pods.at(pod).meta.uid : "nobody";
		n->meta.annotations["slurm-k8s.io/devices"] = R"({"ids":{")" + resource + R"(":["a","b","c","d"]},"pods":{")" + uid + R"(":{")" +
							      resource + R"(":[)" + positions + "]}}}";
		nodes->change(n);
		controller->node_changed(name);
	}
	// It does not know all of them yet.
	void knows_no_devices(const std::string &name)
	{
		auto n = std::make_shared<kube::Node>(*nodes->find(name));
		n->meta.annotations["slurm-k8s.io/devices"] = R"({"ids":{"example.com/card":[]},"pods":{}})";
		nodes->change(n);
		controller->node_changed(name);
	}
	void end_pod(const std::string &name)
	{
		auto it = pods.find(name);
		const ForeignPodPtr last = std::make_shared<ForeignPod>(it->second);
		pods.erase(it);
		allocated.erase(name);
		news_.push_back([this, last] { last->node_name.empty() ? controller->unbound_removed(last) : controller->removed(last); });
		for (const auto &[other, p] : pods)
			if (p.shared)
				kubelet_looks(other); // there is more room
	}
	// A pod was made smaller or larger, or the kubelet comes back.
	void kubelet_looks(const std::string &name)
	{
		if (kubelet_takes > Millis(0))
			return kubelet_works(name);
		news_.push_back([this, name] {
			if (kubelets && pods.contains(name) && !pods.at(name).over)
				allocate(pods.at(name));
		});
	}
	// etcd is restored from a backup, with what there is now: versions begin anew, and all is listed.
	void restore_etcd()
	{
		news_.clear();
		versions_ = 0;
		for (auto &[name, p] : pods)
			p.meta.resource_version = std::to_string(++versions_);
		list();
	}
	// slurmctld dies: nobody remembers anything
	void restart(bool synced = true)
	{
		news_.clear();
		timer = VirtualTimer();
		nodes = std::make_unique<NodeView>(settings.nodes);
		controller = std::make_unique<Reservations>(
			settings,
			ReservationPorts{*this, *this, timer, [this](std::uint32_t) { return user; }, [](const std::string &) {},
					 [this](const NativeShare &s) { return taken_by(s); }, nullptr, {},
					 [this](const std::string &, std::uint32_t) { return groups; }, dra, binder,
					 [this](const ForeignPodPtr &p, bool there) { placed.push_back(p->node_name + (there ? " there" : p->over ? " never" : " perhaps")); }},
			*nodes);
		if (synced)
			list();
	}
	void watch_catches_up()
	{
		watch_delivers = true;
		for (const auto &[name, pod] : pods)
			tell(name);
	}
	void list_nodes() // of Kubernetes
	{
		std::vector<kube::NodePtr> kube;
		for (const std::string name : {"n1", "n2", "alone"}) {
			if (!deleted.contains(name))
				kube.push_back(node_of(name));
		}
		nodes->replace(kube);
	}
	void list()
	{
		list_nodes();
		tell_slurm_nodes();
		std::vector<ForeignPodPtr> all;
		told.clear();
		std::vector<ForeignPodPtr> unbound;
		for (const auto &[name, p] : pods)
			(p.node_name.empty() ? unbound : all).push_back(told[name] = std::make_shared<ForeignPod>(p));
		controller->replaced(all);
		controller->unbound_replaced(unbound);
	}
	void tell_slurm_nodes()
	{
		std::vector<SlurmNode> slurm;
		for (const std::string name : {"n1", "n2", "alone"})
			slurm.push_back({.name = name, .threads_per_core = 1, .asleep = asleep.contains(name)});
		nodes->set_slurm(slurm);
	}
	void run(Millis time = Millis(0))
	{
		for (;;) {
			while (!news_.empty()) {
				auto f = std::move(news_.front());
				news_.pop_front();
				f();
			}
			controller->end_of_turn();
			if (!news_.empty())
				continue;
			if (time <= Millis(0))
				return;
			const Millis some = std::min(time, Millis(100));
			timer.advance(some);
			time -= some;
		}
	}

	// ---- what is seen ----
	// "launched", "back after N s", "waits"
	std::string fate(std::uint32_t id) const
	{
		auto it = answers.find(id);
		if (it == answers.end())
			return "waits";
		return it->second.open ? "launched" : "back after " + std::to_string(it->second.delay.count() / 1000) + " s";
	}
	std::string only_pod() const { return pods.size() == 1 ? pods.begin()->first : std::to_string(pods.size()) + " pods"; }

	ClusterSettings settings;
	VirtualTimer timer;
	std::map<std::string, std::string> mount_troubles; // by the pod's name
	std::map<std::string, ForeignPod> pods; // by name
	std::map<std::string, ForeignPodPtr> told; // what the watch has told last, by name
	std::map<std::uint32_t, GateAnswer> answers;
	std::vector<JobRef> watched;
	std::vector<std::string> ended; // "7 requeue: why"
	SlurmReply end_reply{.ok = true}, devices_reply{.ok = true};
	std::vector<std::string> given; // "7 n1 gpu 1-2"
	// For pods that claim devices; before restart().
	Dra *dra = nullptr;
	KubePort *binder = nullptr;
	std::vector<std::string> touched; // "slurm-7-3ef-n1 1": pods at which kubelets are to look again
	std::vector<std::string> placed; // "n1 there": what foreign pods were told
	// Its Binding, as the API server does it; and what then is known of it.
	int bind_pod(const PodKey &key, const std::string &node)
	{
		const auto it = pods.find(key.name);
		if (it == pods.end())
			return 404;
		if (it->second.meta.uid != key.uid || !it->second.node_name.empty())
			return 409;
		const ForeignPodPtr before = std::make_shared<ForeignPod>(it->second);
		ForeignPod now = it->second;
		now.node_name = node;
		if (watch_delivers)
			news_.push_back([this, before] { controller->unbound_removed(before); });
		appear(std::move(now));
		return 201;
	}
	void news(std::function<void()> f) { news_.push_back(std::move(f)); }
	std::function<std::optional<PodKey>(const NativeShare &)> taken_by = [](auto &) { return std::nullopt; };
	std::int64_t room = 8; // CPUs of each node
	std::set<std::string> asleep; // for Slurm
	std::set<std::string> deleted; // nodes that Kubernetes does not have
	std::map<std::string, std::int64_t> allocatable; // what the nodes have of extended resources
	std::int64_t nodes_made_at = 0; // seconds since 1970
	std::optional<std::string> user = "alice"; // of every uid; nothing: NSS does not answer
	std::vector<std::uint32_t> groups; // of every user
	int fail_delete = 0;   // the next one: HTTP status; 0: none
	Millis delete_takes{0}; // until a DELETE arrives
	int fail_resize = 0;   // the next one: HTTP status; 0: none. 1: done, but the answer is lost
	Resizes can_resize = Resizes::yes;
	bool observes = true;  // kubelets tell which generation they have seen
	bool answers_last = false; // ... to a resize: after the watch has told what the kubelet made of it
	int resized = 0;
	std::map<std::string, Amount> allocated; // by name, of shared pods
	std::int64_t admission_adds = 0; // mCPU, to each pod that is made
	int fail_create = 0;   // HTTP status; 0: none. 1: the answer is lost
	std::string create_error = "refused"; // ... and what is said then
	std::map<std::string, Json> objects; // the last one that was made, by name
	bool watch_delivers = true; // else it is late: until watch_catches_up()
	bool kubelets = true;  // they run
	Millis kubelet_takes{0}; // from looking at a change to telling what it has made of it
	int created = 0;
	std::unique_ptr<NodeView> nodes;
	std::unique_ptr<Reservations> controller;

private:
	std::shared_ptr<kube::Node> node_of(const std::string &name) const
	{
		auto n = std::make_shared<kube::Node>();
		n->meta.name = n->meta.uid = name;
		n->meta.creation_time = nodes_made_at;
		n->ready = true;
		n->allocatable.extended = allocatable;
		if (name != "alone")
			n->meta.labels["shared"] = "true";
		return n;
	}
	kube::Meta meta(const std::string &ns, const std::string &name)
	{
		kube::Meta m;
		m.ns = ns;
		m.name = name;
		m.uid = "uid-" + std::to_string(++uids_);
		return m;
	}
	std::int64_t used_beside(const ForeignPod &p) const
	{
		std::int64_t used = 0;
		for (const auto &[name, other] : pods)
			if (name != p.meta.name && other.node_name == p.node_name && !other.over)
				used += other.shared ? allocated.at(name).milli_cpu : other.milli_cpu;
		return used;
	}
	// What has changed while it worked it looks at next.
	void kubelet_works(const std::string &name)
	{
		if (!working_.insert(name).second)
			return;
		timer.after(kubelet_takes, [this, name, seen = pods.at(name).shared->resize.generation] {
			working_.erase(name);
			if (!pods.contains(name))
				return;
			if (pods.at(name).shared->resize.generation != seen)
				return kubelet_works(name);
			allocate(pods.at(name));
		});
	}
	// As its kubelet does when it sees this spec of a shared pod.
	void allocate(ForeignPod &p)
	{
		kube::Resize now = p.shared->resize;
		const bool fits = used_beside(p) + now.asked.milli_cpu <= room * 1000;
		Amount &has = allocated[p.meta.name];
		if (fits)
			has = {now.asked.milli_cpu, now.asked.memory_bytes};
		now.pending = fits ? kube::Resize::Pending::no : kube::Resize::Pending::deferred;
		now.observed = observes;
		now.allocated.reset();
		if (observes)
			now.allocated = kube::Resources{has.milli_cpu, has.memory_bytes, {}};
		p.milli_cpu = std::max(has.milli_cpu, now.asked.milli_cpu);
		p.memory_bytes = std::max(has.memory_bytes, now.asked.memory_bytes);
		p.shared = std::make_shared<SharedPod>(SharedPod{now, p.shared->jobs});
		tell(p.meta.name);
	}
	bool appear(ForeignPod p)
	{
		const std::int64_t used = used_beside(p);
		p.phase = "Pending";
		if (kubelets) {
			p.over = used + p.milli_cpu > room * 1000;
			p.admitted = !p.over;
			p.phase = p.over ? "Failed" : "Pending";
			p.reason = p.over ? "OutOfcpu" : "";
		}
		pods[p.meta.name] = p;
		if (p.shared)
			allocated[p.meta.name] = {};
		if (p.shared && p.admitted)
			allocate(pods.at(p.meta.name));
		else
			tell(p.meta.name);
		return !p.over;
	}
	void tell(const std::string &name)
	{
		pods.at(name).meta.resource_version = std::to_string(++versions_);
		if (!watch_delivers)
			return;
		news_.push_back([this, name, pod = std::make_shared<ForeignPod>(pods.at(name))] {
			told[name] = pod;
			pod->node_name.empty() ? controller->unbound_changed(pod) : controller->changed(pod);
		});
	}

	void find_trouble(const PodKey &key, Lacks, std::function<void(const std::string &)> done) override
	{
		news_.push_back([done = std::move(done), what = mount_troubles[key.name]] { done(what); });
	}
	void create_pod(const std::string &ns, const Json &object, Created done) override
	{
		KubeReply r;
		std::string uid;
		const std::string name(object["metadata"]["name"].str());
		if (fail_create > 1) {
			r.status = fail_create;
			r.error = create_error;
		} else if (pods.contains(name)) {
			r.status = 409;
			r.error = "already exists";
		} else {
			created++;
			objects[name] = object;
			const Json requests = object["spec"]["containers"].at(0)["resources"]["requests"];
			ForeignPod p;
			p.meta = meta(ns, name);
			p.node_name = object["spec"]["nodeName"].str();
			p.milli_cpu = std::stoll(std::string(requests["cpu"].str())) * 1000 + admission_adds;
			p.memory_bytes = *parse_whole(requests["memory"].str());
			if (!p.node_name.empty() && object["metadata"]["labels"]["slurm-k8s.io/shared-reservation"].str() == p.node_name)
				p.shared = std::make_shared<SharedPod>(
					SharedPod{{.generation = 1, .asked = {p.milli_cpu, p.memory_bytes, {}}},
						  std::string(object["metadata"]["annotations"]["slurm-k8s.io/jobs"].str())});
			const Json limits = object["spec"]["containers"].at(0)["resources"]["limits"];
			limits.each_member([&](std::string_view key, const Json &v) {
				if (requests[key].str() == v.str()) // else the API server refuses it
					p.extended[std::string(key)] = std::stoll(std::string(v.str()));
			});
			object["spec"]["resourceClaims"].each_item([&](const Json &c) {
				p.resource_claims.push_back({std::string(c["name"].str()), std::string(c["resourceClaimName"].str())});
			});
			uid = p.meta.uid;
			if (p.node_name.empty()) {
				p.phase = "Pending";
				pods[name] = p;
				tell(name);
			} else {
				appear(std::move(p));
			}
			r.status = fail_create == 1 ? 0 : 201;
			r.error = fail_create == 1 ? "no answer" : "";
		}
		news_.push_back([done = std::move(done), r, uid] { done(r, r.ok() ? uid : ""); });
	}
	void resize_pod(const PodKey &key, const std::string &version, const Json &requests, Resized done) override
	{
		KubeReply r;
		ForeignPodPtr now;
		auto it = pods.find(key.name);
		const auto other_version = [&] { return !version.empty() && it->second.meta.resource_version != version; }; // empty: any
		r.status = it == pods.end() ? 404 : it->second.meta.uid != key.uid || other_version() ? 409 : 200;
		const int fault = std::exchange(fail_resize, 0);
		if (fault > 1)
			r.status = fault;
		if (can_resize != Resizes::yes)
			r.status = can_resize == Resizes::not_node ? 422 : 404;
		r.error = r.ok() ? "" : "refused";
		if (r.ok()) {
			resized++;
			ForeignPod &p = it->second;
			SharedPod next = *p.shared;
			next.resize.generation++;
			next.resize.asked = {*parse_milli(requests["cpu"].str()), *parse_whole(requests["memory"].str()), {}};
			next.resize.allocated.reset();
			next.resize.pending = kube::Resize::Pending::no;
			p.milli_cpu = std::max(allocated.at(key.name).milli_cpu, next.resize.asked.milli_cpu);
			p.memory_bytes = std::max(allocated.at(key.name).memory_bytes, next.resize.asked.memory_bytes);
			p.shared = std::make_shared<SharedPod>(next);
			tell(key.name);
			now = std::make_shared<ForeignPod>(p);
			kubelet_looks(key.name);
		}
		if (fault == 1)
			r = {.error = "no answer"};
		auto answer = [this, done = std::move(done), r, now] { done(r, can_resize, r.ok() ? now : nullptr); };
		if (answers_last)
			timer.after(Millis(100), answer);
		else
			news_.push_back(answer);
	}
	void annotate_pod(const PodKey &key, std::string_view name, const std::string &value, KubePort::Done done) override
	{
		KubeReply r;
		if (name == "slurm-k8s.io/look-again")
			touched.push_back(key.name + " " + value);
		r.status = pods.contains(key.name) && name == "slurm-k8s.io/jobs" ? 200 : 404;
		if (r.ok()) {
			ForeignPod &p = pods.at(key.name);
			p.shared = std::make_shared<SharedPod>(SharedPod{p.shared->resize, value});
			tell(key.name);
		}
		news_.push_back([done = std::move(done), r] { done(r); });
	}
	void delete_pod(const PodKey &key, std::int64_t grace, KubePort::Done done) override
	{
		KubeReply r;
		auto it = pods.find(key.name);
		r.status = it == pods.end() ? 404 : it->second.meta.uid != key.uid ? 409 : grace < 1 ? 422 : 200;
		if (fail_delete)
			r.status = std::exchange(fail_delete, 0);
		auto arrive = [this, name = key.name, done = std::move(done), r] {
			news_.push_back([done, r] { done(r); });
			if (r.ok())
				end_pod(name);
		};
		if (delete_takes > Millis(0))
			timer.after(delete_takes, arrive);
		else
			arrive();
	}
	void answer(JobRef job, GateAnswer answer) override { answers[job.id] = answer; }
	void watch_end(JobRef job) override { watched.push_back(job); }
	void set_devices(JobRef job, DeviceChange change, SlurmPort::Done done) override
	{
		given.push_back(std::to_string(job.id) + " " + change.node + " " + change.gres + " " + index_list(change.devices));
		news_.push_back([this, done = std::move(done)] { done(devices_reply); });
	}
	void end(JobRef job, bool requeue, std::string why, SlurmPort::Done done) override
	{
		ended.push_back(std::to_string(job.id) + (requeue ? " requeue: " : " cancel: ") + why);
		if (ended.size() > 10)
			return; // it would go on for ever
		news_.push_back([this, job, done = std::move(done)] {
			if (end_reply.ok)
				controller->ended(job); // job_fini comes first
			done(end_reply);
		});
	}

	std::deque<std::function<void()>> news_;
	std::set<std::string> working_; // kubelets of these pods
	int uids_ = 0, versions_ = 0;
};

} // namespace sk8::core::test

#endif
