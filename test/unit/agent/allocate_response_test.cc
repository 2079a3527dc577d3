// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/agent/allocate_response.h"

#include "lib/base/text.h"
#include "test/unit/agent/answers.h"
#include "test/unit/catch.h"

using namespace sk8;
using namespace sk8::agent;
using namespace sk8::agent::test;

static DeviceAnswer read(const std::string &message)
{
	return parse_allocate_response(base64_encode(message));
}

TEST_CASE("a device plugin's answer: its variables and the nodes of its devices")
{
	const std::string hca = variable("RDMA_DEVICE", "mlx5_0") + variable("EMPTY", "") + mount("/lib/x", "/opt/x") +
				device("/dev/in-container", "/dev/infiniband/uverbs0", "rw") + annotation("a", "b") +
				device("/dev/infiniband/rdma_cm", "/dev/infiniband/rdma_cm", "rwm") + field(5, field(1, "vendor.com/class=x"));
	CHECK(read(hca) == DeviceAnswer{{{"RDMA_DEVICE", "mlx5_0"}, {"EMPTY", ""}}, {"/dev/infiniband/rdma_cm", "/dev/infiniband/uverbs0"}});
	CHECK(read("") == DeviceAnswer{});
	// what a later release may add, of all kinds that there are
	const std::string more = std::string("\x48\x96\x01", 3) + std::string("\x51", 1) + "12345678" + std::string("\x5d", 1) + "1234";
	CHECK(read(more + hca + more) == read(hca));
	// as Go writes it: {"Envs":{"A":"b"},"Devices":[{"ContainerPath":"/dev/n","HostPath":"/dev/null","Permissions":"mrw"}]}
	CHECK(parse_allocate_response("CgYKAUESAWIaGAoGL2Rldi9uEgkvZGV2L251bGwaA21ydw==") == DeviceAnswer{{{"A", "b"}}, {"/dev/null"}});
}

TEST_CASE("a device plugin's answer: bytes that are no such message say nothing")
{
	const std::string good = variable("GOOD", "1");
	const auto [what, bytes] = GENERATE_COPY(table<std::string, std::string>(
		{{"a tag that is cut off", "\x80"},
		 {"a length that is cut off", "\x0a\xff"},
		 {"a varint that never ends", "\x48" + std::string(20, '\xff')},
		 {"a varint of more than 64 bits", "\x48" + std::string(9, '\xff') + "\x02"},
		 {"a tag that never ends", std::string(64, '\xff')},
		 {"bytes that are not there", "\x0a\x05x"},
		 {"a length of all that 64 bits can say", "\x0a" + std::string(9, '\xff') + "\x01"},
		 {"a length that would wrap a sum", "\x0a\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"},
		 {"64 bits that are not there", "\x51" "1234567"},
		 {"32 bits that are not there", "\x5d" "123"},
		 {"a group", std::string("\x0b\x0c", 2)},
		 {"a kind that there is not", "\x0e"},
		 {"field 0", std::string("\x02\x00", 2)},
		 {"a variable whose name is cut off", "\x0a\x02\x0a\x05"},
		 {"a device whose path is cut off", "\x1a\x02\x12\x05"},
		 {"more than any plugin says", std::string(max_answer, 'x')}}));
	CAPTURE(what);
	CHECK(read(good + bytes) == DeviceAnswer{});
	CHECK(read(good) == DeviceAnswer{{{"GOOD", "1"}}, {}});
	CHECK(parse_allocate_response("no base64!") == DeviceAnswer{});
}

TEST_CASE("a device plugin's answer: messages in messages are not followed")
{
	std::string deep = "x";
	for (int i = 0; i < 5000; i++)
		deep = field(1, deep);
	CHECK(read(deep) == DeviceAnswer{});
}

TEST_CASE("a device plugin's answer: a step is not given what is its user's, Slurm's or a loader's")
{
	for (const char *name : {"NVIDIA_VISIBLE_DEVICES", "a", "_X", "A1", "FPGA_IMAGE", "PATHS"})
		CHECK(may_be_given(name));
	const std::string longest(128, 'A');
	CHECK(may_be_given(longest));
	for (const std::string &name : {std::string(), std::string("1A"), std::string("A-B"), std::string("A B"), std::string("A=B"), std::string("A\nB"),
					std::string("A\0B", 3), longest + "A", std::string("\xc3\xa4")})
		CHECK_FALSE(may_be_given(name));
	for (const char *name : {"PATH", "MANPATH", "PYTHONPATH", "LD_PRELOAD", "LD_LIBRARY_PATH", "SLURM_JOB_ID", "SLURMD_NODENAME", "SPANK_X", "PMI_RANK",
				 "PMIX_RANK", "KUBERNETES_SERVICE_HOST", "KUBECONFIG", "HOME", "USER", "SHELL", "TMPDIR", "PWD", "_", "IFS", "ENV", "BASH_ENV",
				 "BASH_FUNC_x", "PYTHONSTARTUP", "PERL5OPT", "RUBYOPT", "GLIBC_TUNABLES", "NODE_OPTIONS", "GIT_SSH_COMMAND"}) {
		CAPTURE(name);
		CHECK_FALSE(may_be_given(name));
		CHECK(read(variable(name, "x") + variable("GOOD", "1")) == DeviceAnswer{{{"GOOD", "1"}}, {}});
	}
	for (const std::string &value : {std::string("a\nb"), std::string("a\0b", 3), std::string("\x1b[2J"), std::string("\x7f"), std::string(4097, 'x')})
		CHECK(read(variable("X", value)) == DeviceAnswer{});
	CHECK(read(variable("X", std::string(4096, 'x'))).variables.size() == 1);
	CHECK(read(variable("X", "\xc3\xa4 a=b,c")).variables.at("X") == "\xc3\xa4 a=b,c");
}

TEST_CASE("a device plugin's answer: nodes are below /dev")
{
	for (const std::string &path : {"/dev", "/dev/", "/dev/../etc/shadow", "/dev/./x", "/dev//x", "/dev/x/", "/dev/x/..", "/etc/passwd", "dev/x", "/devx", "",
					"/dev/a,/dev/b", "/dev/a b", "/dev/a\n", "/dev/a=b"}) {
		CAPTURE(path);
		CHECK(read(device("/dev/good", path, "rw")) == DeviceAnswer{});
	}
	CHECK(read(device("", "/dev/" + std::string(250, 'x'), "")).nodes.size() == 1);
	CHECK(read(device("", "/dev/" + std::string(251, 'x'), "")).nodes.empty());
	CHECK(read(device("/etc/x", "/dev/vfio/..x", "")).nodes.size() == 1);
}

TEST_CASE("a device plugin's answer: of more than anybody says the beginning counts")
{
	std::string many;
	for (int i = 0; i < 400; i++)
		many += variable("V" + std::to_string(i), "x") + device("", "/dev/n" + std::to_string(i), "rw");
	CHECK(read(many).variables.size() == max_variables);
	CHECK(read(many).nodes.size() == max_device_nodes);
}
