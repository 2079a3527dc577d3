// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// The command line of the simulation, see --help.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/sim/shrink.h"
#include "test/sim/trace.h"
#include "test/sim/world.h"

using namespace sk8;
using namespace sk8::sim;

static const char help[] =
	"sim [OPTION...] [FILE...]\n"
	"\n"
	"Plays the engine against models of Slurm and Kubernetes, with virtual time, faults and crashes, and checks\n"
	"that no invariant breaks. With FILEs: replays these cases. Exit code 0: nothing broke (with --all-mutants:\n"
	"each mutant was caught), 1: something did, 2: wrong usage.\n"
	"\n"
	"  --seed N        the first seed [1]\n"
	"  --seeds N       so many seeds, one after the other [until --seconds or --steps; else 1]\n"
	"  --steps N       until so many steps are done, by all processes together\n"
	"  --seconds N     for so long\n"
	"  --jobs N        processes at the same time [1]\n"
	"  --progress N    a line each N seconds\n"
	"  --mutant NAME   with this deliberate mistake\n"
	"  --mixed         nodes are shared as mixed in two of five cases, as with mutants always\n"
	"  --list-mutants  prints them\n"
	"  --all-mutants   each must be caught within --seeds seeds [10000], or by one of FILEs that names it\n"
	"  --trace         prints each event\n"
	"  --keep-going    prints each seed that breaks something, and goes on\n"
	"  --shrink        of a case that breaks something, a small one\n"
	"  --traces        FILEs are recorded on a real Slurm: the model of Slurm must do the same\n"
	"  --case          prints the case of --seed\n"
	"  --out FILE      where a broken (and shrunk) case is written [sim.case]\n";

namespace {

struct Options {
	std::uint64_t seed = 1, seeds = 0, steps = 0;
	int seconds = 0, jobs = 1, progress = 0;
	std::string mutant, out = "sim.case";
	bool trace = false, traces = false, shrink = false, keep_going = false, print_case = false, all_mutants = false, mixed = false;
	std::vector<std::string> files;
};

// What one process has done; lives in a pipe's message.
struct Tally {
	std::uint64_t seeds = 0, steps = 0, broken_seed = 0;
	double virtual_seconds = 0;
	bool broken = false;
	bool died = false; // the process, of broken_seed
};

double now()
{
	return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The story of a broken case, and its small version in a file.
void explain(Case c, const Options &o)
{
	const std::string first = World(c, false, false).run().violation;
	if (o.shrink)
		c = shrink(std::move(c), first);
	World again(c, true, false);
	const Outcome outcome = again.run();
	for (const auto &line : again.story().last)
		std::printf("%s\n", line.c_str());
	std::printf("\nseed %llu, step %llu, after %.3f s of virtual time\n%s\n\n",
		    static_cast<unsigned long long>(c.seed), static_cast<unsigned long long>(outcome.steps),
		    static_cast<double>(outcome.time) / second, outcome.violation.c_str());
	std::ofstream(o.out) << "# " << outcome.violation << "\n" << c.text();
	std::printf("%s\nwritten to %s; replay: sim --trace %s\n", c.text().c_str(), o.out.c_str(), o.out.c_str());
}

Case case_of(const Options &o, std::uint64_t seed)
{
	return make_case(seed, o.mixed || o.all_mutants || !o.mutant.empty());
}

// Seeds first, first + stride, ...; current: is told each, or null.
Tally run_seeds(const Options &o, std::uint64_t first, std::uint64_t stride, std::uint64_t *current)
{
	Tally t;
	const double start = now();
	double told = start;
	for (std::uint64_t seed = first;; seed += stride) {
		if (o.seeds && seed >= o.seed + o.seeds)
			break;
		if (o.seconds && now() - start >= o.seconds)
			break;
		if (o.steps && t.steps * stride >= o.steps)
			break;
		if (current)
			*current = seed;
		Case c = case_of(o, seed);
		c.mutant = o.mutant;
		const Outcome out = World(c, o.trace, o.trace).run();
		t.seeds++;
		t.steps += out.steps;
		t.virtual_seconds += static_cast<double>(out.time) / second;
		if (!out.violation.empty()) {
			if (!t.broken)
				t.broken_seed = seed;
			t.broken = true;
			if (!o.keep_going)
				break;
			std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), out.violation.c_str());
			std::fflush(stdout); // processes end without it
		}
		if (o.progress && now() - told >= o.progress) {
			told = now();
			std::printf("%.0f s: %llu seeds, %llu steps by this process\n", told - start,
				    static_cast<unsigned long long>(t.seeds), static_cast<unsigned long long>(t.steps));
			std::fflush(stdout);
		}
	}
	return t;
}

// Where a process is, for when it dies.
class SharedSeed {
public:
	SharedSeed()
		: at_(static_cast<std::uint64_t *>(
			  mmap(nullptr, sizeof(std::uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)))
	{
		if (at_ == MAP_FAILED)
			std::abort();
	}
	SharedSeed(const SharedSeed &) = delete;
	SharedSeed &operator=(const SharedSeed &) = delete;
	~SharedSeed() { munmap(at_, sizeof(std::uint64_t)); }
	std::uint64_t *get() { return at_; }

private:
	std::uint64_t *at_;
};

// The models serve one world per process: C has no context. So processes, not threads.
Tally run_all(const Options &o)
{
	if (o.jobs <= 1)
		return run_seeds(o, o.seed, 1, nullptr);
	std::vector<int> pipes;
	std::vector<pid_t> children;
	std::vector<SharedSeed> current(static_cast<std::size_t>(o.jobs));
	for (int i = 0; i < o.jobs; i++) {
		int fd[2];
		if (pipe(fd) != 0)
			std::abort();
		const pid_t child = fork();
		if (child == 0) {
			const Tally t = run_seeds(o, o.seed + static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(o.jobs),
						current[static_cast<std::size_t>(i)].get());
			_exit(write(fd[1], &t, sizeof(t)) == sizeof(t) ? 0 : 1);
		}
		close(fd[1]);
		pipes.push_back(fd[0]);
		children.push_back(child);
	}
	Tally all;
	for (int i = 0; i < o.jobs; i++) {
		const auto at = static_cast<std::size_t>(i);
		Tally t;
		const bool told = read(pipes[at], &t, sizeof(t)) == sizeof(t);
		int status = 0;
		waitpid(children[at], &status, 0);
		if (!told) { // a sanitizer, an assertion, a signal: a violation
			t.broken = t.died = true;
			t.broken_seed = *current[at].get();
			std::printf("seed %llu: the simulation dies of signal %d; --trace shows where\n",
				    static_cast<unsigned long long>(t.broken_seed), WIFSIGNALED(status) ? WTERMSIG(status) : 0);
			std::fflush(stdout);
		}
		all.seeds += t.seeds;
		all.steps += t.steps;
		all.virtual_seconds += t.virtual_seconds;
		if (t.broken && (!all.broken || t.broken_seed < all.broken_seed)) {
			all.broken = true;
			all.broken_seed = t.broken_seed;
			all.died = t.died;
		}
	}
	return all;
}

int search(const Options &o)
{
	const double start = now();
	const Tally t = run_all(o);
	const double took = now() - start;
	if (t.broken && !t.died && !o.keep_going) {
		Case c = case_of(o, t.broken_seed);
		c.mutant = o.mutant;
		explain(std::move(c), o);
	}
	std::printf("%llu seeds, %llu steps, %.0f s of virtual time, in %.1f s: %.0f steps a minute\n",
		    static_cast<unsigned long long>(t.seeds), static_cast<unsigned long long>(t.steps), t.virtual_seconds, took,
		    static_cast<double>(t.steps) / took * 60);
	return t.broken;
}

// In a process of its own: the simulation may die of a mistake.
bool breaks(const Case &c)
{
	const pid_t pid = ::fork();
	if (pid == 0)
		::_exit(World(c, false, false).run().violation.empty() ? 0 : 1);
	int status = 1;
	return pid < 0 || ::waitpid(pid, &status, 0) != pid || status != 0;
}

// The first of the files that catches it, of those that say so in a comment; empty: none does.
std::string caught_by_file(const Options &o)
{
	for (const auto &file : o.files) {
		std::ifstream in(file);
		std::stringstream text;
		text << in.rdbuf();
		if (text.str().find("mutant " + o.mutant) == std::string::npos)
			continue;
		if (auto c = parse_case(text.str())) {
			c->mutant = o.mutant;
			if (breaks(*c))
				return file;
		}
	}
	return "";
}

int catch_mutants(Options o)
{
	std::size_t caught = 0;
	if (!o.seeds)
		o.seeds = 10'000;
	for (const auto &m : mutants()) {
		o.mutant = m.name;
		if (const std::string file = caught_by_file(o); !file.empty()) {
			std::printf("%-24s %s\n", m.name, file.c_str());
			std::fflush(stdout);
			caught++;
			continue;
		}
		const Tally t = run_all(o);
		caught += t.broken;
		std::string how = "NOT CAUGHT";
		if (t.died) {
			how = "seed " + std::to_string(t.broken_seed) + ": the simulation dies of it";
		} else if (t.broken) {
			Case c = case_of(o, t.broken_seed);
			c.mutant = m.name;
			how = "seed " + std::to_string(t.broken_seed) + ": " + World(c, false, false).run().violation;
		}
		std::printf("%-24s %s\n", m.name, how.c_str());
		std::fflush(stdout);
	}
	std::printf("%zu of %zu mutants caught\n", caught, mutants().size());
	return caught != mutants().size();
}

int replay(const Options &o)
{
	int failed = 0;
	for (const auto &file : o.files) {
		std::ifstream in(file);
		std::stringstream text;
		text << in.rdbuf();
		if (in && o.traces) {
			const std::string why = replay_trace(text.str());
			std::printf("%s: %s\n", file.c_str(), why.empty() ? "passed" : why.c_str());
			failed += !why.empty();
			continue;
		}
		auto c = parse_case(text.str());
		if (!in || !c || !mutant_named(c->mutant)) {
			std::fprintf(stderr, "sim: %s: %s\n", file.c_str(),
				     !in ? "cannot be read" : !c ? c.error().message.c_str() : "has an unknown mutant");
			return 2;
		}
		if (!o.mutant.empty())
			c->mutant = o.mutant;
		const Outcome out = World(*c, o.trace, o.trace).run();
		std::printf("%s: %s\n", file.c_str(), out.violation.empty() ? "passed" : out.violation.c_str());
		if (!out.violation.empty()) {
			failed++;
			if (o.shrink)
				explain(*c, o);
		}
	}
	return failed != 0;
}

bool parse(int argc, char **argv, Options &o)
{
	struct Number {
		const char *name;
		std::function<void(std::uint64_t)> set;
	};
	const Number numbers[] = {
		{"--seed", [&](auto n) { o.seed = n; }},
		{"--seeds", [&](auto n) { o.seeds = n; }},
		{"--steps", [&](auto n) { o.steps = n; }},
		{"--seconds", [&](auto n) { o.seconds = static_cast<int>(n); }},
		{"--jobs", [&](auto n) { o.jobs = static_cast<int>(n); }},
		{"--progress", [&](auto n) { o.progress = static_cast<int>(n); }},
	};
	const std::pair<const char *, bool *> flags[] = {{"--trace", &o.trace},
							 {"--shrink", &o.shrink},
							 {"--traces", &o.traces},
							 {"--keep-going", &o.keep_going},
							 {"--case", &o.print_case},
							 {"--all-mutants", &o.all_mutants},
							 {"--mixed", &o.mixed}};
	const std::pair<const char *, std::string *> texts[] = {{"--mutant", &o.mutant}, {"--out", &o.out}};
	for (int i = 1; i < argc; i++) {
		const std::string word = argv[i];
		bool known = word[0] != '-';
		if (known)
			o.files.push_back(word);
		for (const auto &[name, flag] : flags)
			if (word == name)
				known = *flag = true;
		for (const auto &[name, text] : texts)
			if (word == name && i + 1 < argc) {
				known = true;
				*text = argv[++i];
			}
		for (const auto &n : numbers)
			if (!known && word == n.name && i + 1 < argc) {
				known = true;
				n.set(std::strtoull(argv[++i], nullptr, 10));
			}
		if (!known) {
			std::fprintf(stderr, "sim: unknown option %s, or its value is missing; see --help\n", word.c_str());
			return false;
		}
	}
	if (!mutant_named(o.mutant)) {
		std::fprintf(stderr, "sim: no mutant %s, see --list-mutants\n", o.mutant.c_str());
		return false;
	}
	if (!o.seeds && !o.seconds && !o.steps && !o.all_mutants)
		o.seeds = 1;
	return true;
}

} // namespace

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (!std::strcmp(argv[i], "--help") || !std::strcmp(argv[i], "-h"))
			return std::fputs(help, stdout) < 0;
		if (!std::strcmp(argv[i], "--list-mutants")) {
			for (const auto &m : mutants())
				std::printf("%-24s %s\n", m.name, m.what);
			return 0;
		}
	}
	Options o;
	if (!parse(argc, argv, o))
		return 2;
	if (o.print_case)
		return std::fputs(case_of(o, o.seed).text().c_str(), stdout) < 0;
	if (o.all_mutants)
		return catch_mutants(o);
	return o.files.empty() ? search(o) : replay(o);
}
