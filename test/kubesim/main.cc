// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "test/kubesim/api.h"
#include "test/kubesim/audit.h"
#include "test/kubesim/auth.h"
#include "test/kubesim/container.h"
#include "test/kubesim/faults.h"
#include "test/kubesim/hang.h"
#include "test/kubesim/http.h"
#include "test/kubesim/kubelet.h"
#include "test/kubesim/loop.h"
#include "test/kubesim/options.h"
#include "test/kubesim/yaml.h"

namespace kubesim {
namespace {

std::string read_file(const std::string &path, std::string *problem)
{
	if (path.empty())
		return {};
	std::ifstream in(path, std::ios::binary);
	if (!in)
		*problem = "cannot read " + path;
	return std::string(std::istreambuf_iterator<char>(in), {});
}

std::string seed_rbac(Api &api, const std::string &path)
{
	std::string problem;
	std::string text = read_file(path, &problem);
	auto documents = parse_yaml_documents(text, &problem);
	for (const auto &d : documents)
		if (d.is_object() && problem.empty())
			problem = api.seed(d);
	return problem.empty() ? "" : path + ": " + problem;
}

void write_port(const Options &o, int port)
{
	std::printf("kubesim: https://%s:%d\n", o.address.c_str(), port);
	std::fflush(stdout);
	if (o.port_file.empty())
		return;
	const std::string fresh = o.port_file + ".new";
	std::ofstream(fresh) << port << "\n";
	if (std::rename(fresh.c_str(), o.port_file.c_str()))
		std::perror("kubesim: cannot write the port file");
}

// SIGTERM and SIGINT end the loop; all other signals that could disturb are off.
int watch_signals(Loop &loop)
{
	signal(SIGPIPE, SIG_IGN);
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, nullptr);
	int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	loop.add_fd(fd, EPOLLIN, [&loop] { loop.stop(); });
	return fd;
}

void keep_ticking(Loop &loop, Api &api)
{
	api.tick();
	loop.after_us(250000, [&] { keep_ticking(loop, api); });
}

int fail(const std::string &problem)
{
	std::fprintf(stderr, "kubesim: %s\n", problem.c_str());
	return 1;
}

int serve(const Options &o)
{
	Loop loop;
	watch_signals(loop);
	Store store(o.watch_window);
	std::string problem;
	if (!o.data.empty())
		problem = store.open_journal(o.data);
	Audit audit;
	if (problem.empty() && !o.audit_log.empty())
		problem = audit.open(o.audit_log);
	Rbac rbac(store, !o.rbac.empty());
	Api api(store, rbac);
	api.set_bookmark_interval(static_cast<std::int64_t>(o.bookmark_seconds * 1e6));
	api.seed_namespaces();
	if (problem.empty() && !o.rbac.empty())
		problem = seed_rbac(api, o.rbac);
	Tokens tokens;
	if (problem.empty() && !o.token_file.empty())
		problem = tokens.load(o.token_file);
	Faults faults(api);
	api.admin = [&](const Request &r) { return faults.serve(r); };
	Kubelet kubelet(loop, api, audit, o);
	if (problem.empty())
		problem = kubelet.start();
	HttpOptions h;
	h.address = o.address;
	h.port = o.port;
	h.certificate = read_file(o.certificate, &problem);
	h.key = read_file(o.key, &problem);
	h.client_ca = read_file(o.client_ca, &problem);
	Http http(loop, api, rbac, tokens, faults, audit);
	if (problem.empty())
		problem = http.start(h);
	if (!problem.empty())
		return fail(problem);
	write_port(o, http.port());
	keep_ticking(loop, api);
	loop.run();
	return 0;
}

} // namespace
} // namespace kubesim

int main(int argc, char **argv)
{
	if (argc > 1 && std::string(argv[1]) == "--container")
		// Without exit handlers: in a PID namespace whose init is gone no thread can be
		// made any more, and sanitizers want one.
		_exit(kubesim::run_container_shim(argc, argv));
	int exit_code = 0;
	auto options = kubesim::parse_options(argc, argv, &exit_code);
	if (!options)
		return exit_code;
	return options->accept_and_hang ? kubesim::accept_and_hang(*options) : kubesim::serve(*options);
}
