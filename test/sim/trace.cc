// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "test/sim/trace.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <vector>

#include "lib/core/job.h"
#include "lib/core/pod_key.h"
#include "test/sim/case.h"
#include "test/sim/model_slurm.h"

namespace sk8::sim {

namespace {

// "0-3,5"
std::vector<std::uint16_t> read_cores(const std::string &text)
{
	std::vector<std::uint16_t> out;
	std::istringstream parts(text);
	for (std::string part; std::getline(parts, part, ',');) {
		const auto dash = part.find('-');
		const int first = std::stoi(part), last = dash == part.npos ? first : std::stoi(part.substr(dash + 1));
		for (int c = first; c <= last; c++)
			out.push_back(static_cast<std::uint16_t>(c));
	}
	return out;
}

// The stand of test/slurm, as the model has it: two nodes with 8 cores and 16000 MB.
class Player final : public SlurmHooks, public SlurmWatcher {
public:
	Player() { settle_boot(); }

	std::string play(const std::string &text)
	{
		std::istringstream lines(text);
		std::vector<std::string> wanted;
		std::string step;
		for (std::string line; std::getline(lines, line);) {
			if (line.starts_with("> ")) {
				if (std::string why = compare(step, wanted); !why.empty())
					return why;
				step = line;
				wanted.clear();
				said_.clear();
				act(line.substr(2));
				settle();
			} else {
				wanted.push_back(line);
			}
		}
		return compare(step, wanted);
	}

private:
	static std::string compare(const std::string &step, const std::vector<std::string> &wanted, const std::vector<std::string> &said)
	{
		for (std::size_t i = 0; i < std::max(wanted.size(), said.size()); i++) {
			const std::string w = i < wanted.size() ? wanted[i] : "nothing more", s = i < said.size() ? said[i] : "nothing more";
			if (w != s)
				return "after \"" + step + "\" Slurm had \"" + w + "\", the model has \"" + s + "\"";
		}
		return "";
	}
	std::string compare(const std::string &step, const std::vector<std::string> &wanted)
	{
		return compare(step, wanted, said_);
	}

	void settle_boot()
	{
		slurm_.tries_at_once = 1000;
		slurm_.boot(*this);
		run();
		said_.clear();
	}
	void run()
	{
		for (const Micros end = time_.now() + 30 * second; !time_.empty() && time_.next_at() < end;)
			time_.step();
	}
	void settle()
	{
		run();
		std::set<std::string> live;
		for (const auto &[id, job] : slurm_.jobs())
			if (job.live())
				live.insert(" " + job.name + "=" + core::job_state_name(job.state) +
					    (job.node.empty() ? "" : "@" + job.node));
		std::string line = ":";
		for (const auto &part : live)
			line += part;
		said_.push_back(line);
	}

	// ---- what is asked ----

	void act(const std::string &text)
	{
		auto c = parse_case("0 " + text);
		const Action a = c.ok() && !c->actions.empty() ? c->actions[0] : Action{};
		const std::string name = a.has("pod") ? a.text("pod") : a.text("job");
		SlurmJob *job = slurm_.live_job(name);
		if (a.verb == "submit")
			submit(a);
		else if (a.verb == "batch")
			batch(a);
		else if (a.verb == "end")
			end(a);
		else if (a.verb == "cancel")
			cancel(job);
		else if (a.verb == "hold" || a.verb == "release")
			set_priority(*job, a.verb == "hold" ? 0 : 1000);
		else if (a.verb == "mask")
			mask(a);
		else if (a.verb == "unmask")
			mask({});
		else if (a.verb == "restart")
			restart();
		else
			said_.push_back("the model knows no \"" + text + "\"");
	}
	void submit(const Action &a)
	{
		const std::string mark = core::PodKey{"c", "ns", a.text("pod"), a.text("pod")}.mark();
		const std::string name = a.text("pod"), partition = a.has("tier") ? a.text("tier") : "high";
		const std::string exclude = partition == "both" ? a.text("exclude") : "n2"; // one and lowone have n1 only
		sk8_submit s{};
		s.mark = mark.c_str();
		s.job_name = name.c_str();
		s.account = s.qos = s.reservation = s.wckey = s.comment = s.features = s.licenses = s.tres_per_node = "";
		s.partition = partition.c_str();
		s.cpus = static_cast<std::uint32_t>(a.number("cpus", 1));
		s.memory_mb = static_cast<std::uint64_t>(a.number("mem"));
		s.excluded_nodes = exclude.c_str();
		s.required_node = "";
		sk8_outcome out{};
		ops_.submit(&s, &out);
		ops_.unlock(true, true, false);
		said_.insert(said_.begin(), std::string("= ") + (!out.job_id ? "refused" : out.running ? "running" : "pending"));
		ids_[name] = {out.job_id, out.submit_time};
	}
	void end(const Action &a)
	{
		static const std::pair<const char *, sk8_job_state> states[] = {
			{"COMPLETED", SK8_JOB_COMPLETED}, {"FAILED", SK8_JOB_FAILED}, {"OUT_OF_MEMORY", SK8_JOB_OUT_OF_MEMORY}};
		const std::string name = a.text("pod"), mark = core::PodKey{"c", "ns", name, name}.mark();
		sk8_end e{};
		e.job_id = ids_[name].id;
		e.submit_time = ids_[name].submit_time;
		e.mark = mark.c_str();
		e.comment = e.node = "";
		e.exit_code = static_cast<std::uint32_t>(a.number("exit")) << 8;
		for (const auto &[word, state] : states)
			if (a.text("state") == word)
				e.state = state;
		sk8_outcome out{};
		ops_.end(&e, &out);
		ops_.unlock(true, true, false);
		said_.insert(said_.begin(), out.rc == 0 ? "= ok" : "= refused");
	}
	void batch(const Action &a)
	{
		SlurmJob job;
		job.name = a.text("job");
		job.cpus = static_cast<std::uint32_t>(a.number("cpus", 1));
		job.memory_mb = 100 * job.cpus;
		job.high = true;
		job.excluded = "n2";
		job.life = 1000 * second;
		slurm_.sbatch(std::move(job));
	}
	void cancel(SlurmJob *job)
	{
		if (job)
			slurm_.finish(*job, SK8_JOB_CANCELLED, 0, 0);
	}
	void set_priority(SlurmJob &job, std::uint32_t priority)
	{
		job.priority = priority;
		slurm_.updated();
	}
	void mask(const Action &a)
	{
		masks_ = std::make_shared<core::MaskSnapshot>();
		core::NodeMask m;
		m.node = a.text("node");
		m.cores = read_cores(a.text("cores"));
		m.more_cores = static_cast<std::uint32_t>(a.number("more"));
		m.memory_mb = static_cast<std::uint64_t>(a.number("mem"));
		m.whole = a.has("whole");
		if (!m.node.empty())
			masks_->masks.push_back(std::make_shared<core::NodeMask>(m));
		slurm_.updated();
	}
	void restart()
	{
		run(); // it has saved its state
		slurm_.kill();
		slurm_.boot(*this);
	}

	// ---- hooks ----

	void said(const char *what, const sk8_job &job)
	{
		std::string line = std::string("< ") + what + " pod=" + core::PodKey::from_mark(job.mark)->uid + " state=" +
				   core::job_state_name(job.state) + " node=" + job.node + " cores=";
		for (std::uint32_t i = 0; i < job.core_count; i++)
			line += (i ? "," : "") + std::to_string(job.cores[i]);
		said_.push_back(line + " mem=" + std::to_string(job.memory_mb));
	}
	void node_init() override { said_.push_back("< node_init"); }
	void job_start(const sk8_job &job) override { said("job_start", job); }
	void job_fini(const sk8_job &job) override { said("job_fini", job); }
	void reconfigure() override { said_.push_back("< reconfigure"); }
	std::shared_ptr<const core::MaskSnapshot> masks() override { return masks_; }
	void slurm_changed() override {}
	void job_started(const SlurmJob &) override {}
	void job_ended(const SlurmJob &) override {}
	void job_ended_by_us(const SlurmJob &, const sk8_end &) override {}
	void submitted_by_us(const SlurmJob &) override {}
	void pinned_by_us(const SlurmJob &) override {}
	void started_without_being_woken(const SlurmJob &) override {}

	Schedule time_;
	Dice dice_{1};
	Story story_{time_};
	ModelSlurm slurm_{time_, dice_, story_, *this, 2, 8, 16000, 10'000, 0};
	const sk8_slurm_ops &ops_ = ModelSlurm::ops();
	std::shared_ptr<core::MaskSnapshot> masks_;
	std::map<std::string, core::JobRef> ids_;
	std::vector<std::string> said_;
};

} // namespace

std::string replay_trace(const std::string &text)
{
	return Player().play(text);
}

} // namespace sk8::sim
