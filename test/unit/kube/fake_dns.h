// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// What names mean in this process: takes the place of libc's getaddrinfo(), which
// libcurl calls from threads of its own. Other names are looked up as ever.
#ifndef SK8_TEST_UNIT_KUBE_FAKE_DNS_H
#define SK8_TEST_UNIT_KUBE_FAKE_DNS_H

#include <string>
#include <vector>

class FakeDns {
public:
	// Names are forgotten at the end, and who waits is let go.
	~FakeDns();
	// addresses: numeric, tried in this order; none: there is no such name.
	void set(const std::string &name, std::vector<std::string> addresses);
	// Whoever asks for the name waits until set() or the end.
	void hang(const std::string &name);
	// How many have asked.
	static int asked(const std::string &name);
};

#endif
