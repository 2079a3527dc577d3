// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// HTTPS by libmicrohttpd, driven by our loop: no threads, long answers (watches)
// suspend their connection until there is more.
#ifndef KUBESIM_HTTP_H
#define KUBESIM_HTTP_H

#include <functional>
#include <memory>
#include <string>

#include "test/kubesim/api.h"
#include "test/kubesim/audit.h"
#include "test/kubesim/auth.h"
#include "test/kubesim/faults.h"
#include "test/kubesim/loop.h"

struct MHD_Daemon;

namespace kubesim {

struct HttpOptions {
	std::string address = "127.0.0.1";
	int port = 0;
	std::string certificate, key, client_ca; // PEM texts; client_ca may be empty
};

class Http {
public:
	Http(Loop &loop, Api &api, Rbac &rbac, Tokens &tokens, Faults &faults, Audit &audit);
	~Http();
	Http(const Http &) = delete;
	Http &operator=(const Http &) = delete;

	std::string start(const HttpOptions &options); // an error sentence, or ""
	int port() const { return port_; }

	struct Exchange; // one request and its answer

private:
	friend struct Exchange;
	std::string settle_user(Exchange &x); // "" or the refusal is in x
	void pump();

	Loop &loop_;
	Api &api_;
	Rbac &rbac_;
	Tokens &tokens_;
	Faults &faults_;
	Audit &audit_;
	MHD_Daemon *daemon_ = nullptr;
	int port_ = 0;
	std::string certificate_, key_, client_ca_;
};

} // namespace kubesim

#endif
