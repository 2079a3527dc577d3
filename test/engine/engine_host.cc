// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// engine_host CONFIG STATE_DIR NODES CORES PODS CANCELS SEED [hold]
//
// Runs the engine against an API server with the miniature slurmctld until PODS pods
// have been through, cancelling CANCELS jobs on the way, and reconfiguring once.
// Exit 0: all of them ended. With hold it then goes on until the end of its input, where
// each line "reconfigure" does that. For sanitizers: all threads of the product run.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <random>
#include <string>
#include <thread>

#include "test/engine/model_slurmctld.h"

static void print_log(sk8_log_level, const char *text)
{
	std::fprintf(stderr, "%s\n", text);
}

int main(int argc, char **argv)
{
	const bool hold = argc == 9 && !std::strcmp(argv[8], "hold");
	if (argc != 8 && !hold) {
		std::fprintf(stderr, "usage: engine_host CONFIG STATE_DIR NODES CORES PODS CANCELS SEED [hold]\n");
		return 2;
	}
	std::vector<std::string> nodes;
	for (int i = 1; i <= std::atoi(argv[3]); i++)
		nodes.push_back("f" + std::to_string(i));
	const auto pods = static_cast<std::size_t>(std::atoi(argv[5]));
	std::mt19937 random(static_cast<unsigned>(std::atoi(argv[7])));

	static sk8_host host = {
		.log = print_log,
		.log_level = [] { return std::getenv("ENGINE_HOST_DEBUG") ? SK8_LOG_DEBUG : SK8_LOG_VERBOSE; },
		.config_path = argv[1],
		.state_dir = argv[2],
		.slurm_cluster = "model",
		.slurm_version = "0",
		.slurm_uid = 0,
		.ops = &sk8::test::ModelSlurmctld::ops(),
	};
	sk8::test::ModelSlurmctld slurmctld(nodes, std::atoi(argv[4]));
	if (sk8_runtime_acquire(&host))
		return 1;
	slurmctld.start();
	// on a busy machine the engine may not have listed its pods yet
	if (pods > 0)
		slurmctld.wait_submitted(60);
	for (int i = 0; i < std::atoi(argv[6]); i++) {
		std::this_thread::sleep_for(std::chrono::milliseconds(50 + random() % 100));
		slurmctld.cancel_one(random);
		if (i == 3)
			sk8_on_reconfigure();
	}
	const bool ok = slurmctld.wait_ended(pods, 120);
	std::printf("%zu completed\n", slurmctld.completed());
	std::fflush(stdout);
	for (std::string line; hold && std::getline(std::cin, line);)
		if (line == "reconfigure")
			sk8_on_reconfigure();
	slurmctld.shutdown();
	return ok ? 0 : 1;
}
