// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
//
// A scripted HTTPS server on the loopback: it gives the answers it was told, in
// order, and remembers the requests. Its threads are its own; every function here
// may be called from the test's thread.
#ifndef SK8_TEST_UNIT_KUBE_HTTPS_SERVER_H
#define SK8_TEST_UNIT_KUBE_HTTPS_SERVER_H

#include <condition_variable>
#include <deque>
#include <memory>
#include <microhttpd.h>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

// Certificates made once per run by the openssl command.
struct Pki {
	std::string ca, other_ca; // PEM
	struct Identity {
		std::string certificate, key; // PEM
	};
	Identity server;  // signed by ca, for localhost and 127.0.0.1
	Identity elsewhere; // signed by ca, for api.example only
	Identity client;
	Identity expired;   // as server, but its time is over
	static const Pki &get();
};

// A body that the test writes while the client reads.
class Stream {
public:
	void send(const std::string &bytes);
	void end(); // the answer is complete
	void cut(); // the connection breaks
	bool sent(); // all of it is on its way

private:
	friend class HttpsServer;
	std::mutex mutex_;
	std::condition_variable changed_;
	std::string waiting_;
	enum class Then { more, end, cut } then_ = Then::more;
};

struct Answer {
	int status = 200;
	std::string body;
	std::vector<std::pair<std::string, std::string>> headers;
	std::shared_ptr<Stream> stream; // instead of body
	bool hang = false;              // never answers
};

struct Seen {
	std::string method, target, body; // target: path and query as sent
	std::string authorization, content_type, host;
	std::string connection; // equal for requests on one connection
};

class HttpsServer {
public:
	explicit HttpsServer(const Pki::Identity &identity = Pki::get().server, int port = 0,
			     const std::string &address = "127.0.0.1");
	~HttpsServer();
	HttpsServer(const HttpsServer &) = delete;
	HttpsServer &operator=(const HttpsServer &) = delete;

	int port() const { return port_; }
	// What a reflector asks before it goes on with a watch (limit=1) is answered with this
	// resourceVersion, is in no order with the answers and not among the requests seen.
	// Empty: as any other request.
	void answer_checks(const std::string &version);
	std::string url() const;

	void push(Answer answer);
	void push(int status, const std::string &body) { push({status, body, {}, nullptr, false}); }
	std::shared_ptr<Stream> push_stream();
	std::vector<Seen> seen() const;
	std::size_t count() const { return seen().size(); }

private:
	struct Request;
	struct Hooks;
	void release_all();
	MHD_Result answer_next(MHD_Connection *c, const Seen &seen);

	const std::string address_;
	MHD_Daemon *daemon_ = nullptr;
	int port_ = 0;
	mutable std::mutex mutex_;
	std::condition_variable stopped_;
	bool stopping_ = false;
	std::string checks_ = "1000000000";
	std::deque<Answer> answers_;
	std::vector<Seen> seen_;
	std::vector<std::shared_ptr<Stream>> streams_;
};

// A port on which nothing listens now.
int free_port();

// A proxy that makes tunnels (CONNECT) to ports of the loopback, one after the other,
// and remembers what it was told in the clear. Where nobody listens it answers 404.
class TunnelProxy {
public:
	TunnelProxy();
	~TunnelProxy();
	TunnelProxy(const TunnelProxy &) = delete;
	TunnelProxy &operator=(const TunnelProxy &) = delete;

	int port() const { return port_; }
	std::string heard() const;

private:
	void run();
	void serve(int client);
	void copy(int one, int other);

	int fd_ = -1, stop_ = -1, port_ = 0;
	mutable std::mutex mutex_;
	std::string heard_;
	std::thread thread_;
};

// Listens and never says a word.
class SilentServer {
public:
	SilentServer();
	~SilentServer();
	std::string url() const { return "https://127.0.0.1:" + std::to_string(port_); }

private:
	int fd_ = -1, port_ = 0;
};

#endif
