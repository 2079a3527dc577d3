// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// Where the API server is and what proves who we are, read from where a ClusterAccess
// says and read again as it changes: the kubeconfig, too. One thread. Reads small
// files: blocks on the disk.
#ifndef SK8_KUBE_CREDENTIALS_H
#define SK8_KUBE_CREDENTIALS_H

#include <memory>
#include <string>

#include "lib/base/clock.h"
#include "lib/base/result.h"
#include "lib/kube/http_loop.h"
#include "lib/kube/kubeconfig.h"

namespace sk8::kube {

class Credentials {
public:
	// clock must outlive this. Files are believed for the time of cache (client-go:
	// one minute).
	Credentials(ClusterAccess access, const Clock &clock, Millis cache);

	struct Current {
		std::shared_ptr<const TlsMaterial> tls; // another object when it changes
		std::string token;                      // empty: none
		std::string server, proxy_url;          // of ClusterAccess
	};

	// What to use now. If a file cannot be read (or holds nothing usable) what was
	// read before stays; only if there is nothing yet it is an error.
	Result<Current> get();
	// The server refused them: get() looks at the files again. Not more than once a
	// second, so that a wrong token does not become a busy loop.
	void doubt();

private:
	Result<void> read_all();
	Result<void> use(const ClusterAccess &access);
	Result<std::string> read(const Material &from, const char *what) const;

	ClusterAccess access_;
	const Clock &clock_;
	Millis cache_;
	Current current_;
	bool have_ = false;
	bool complained_ = false;
	Millis read_at_{0};
	Millis stale_after_{0};
};

} // namespace sk8::kube

#endif
