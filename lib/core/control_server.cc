// SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
#include "lib/core/control_server.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <poll.h>
#include <sys/socket.h>
#include <vector>

#include "lib/base/guard.h"
#include "lib/base/log.h"
#include "lib/core/identity.h"

namespace sk8::core {

namespace {

class Answered final : public Inquiry {
public:
	explicit Answered(Json reply) : reply_(std::move(reply)) {}
	bool complete() override { return true; }
	Json reply() override { return reply_; }

private:
	Json reply_;
};

} // namespace

Json control_error(std::string_view text)
{
	return Json::object().set("ok", Json::boolean(false)).set("error", text);
}

std::shared_ptr<Inquiry> answered(Json reply)
{
	return std::make_shared<Answered>(std::move(reply));
}

ControlServer::ControlServer(std::string state_dir, uid_t owner, const Clock &clock, Handler handler,
			     ControlLimits limits)
	: state_dir_(std::move(state_dir)), owner_(owner), clock_(clock), handler_(std::move(handler)),
	  limits_(limits), wakeup_(std::make_shared<Wakeup>())
{
}

void ControlServer::stop()
{
	stop_.store(true, std::memory_order_release);
	wakeup_->notify();
}

void ControlServer::run()
{
	while (!stop_.load(std::memory_order_acquire)) {
		guard("control socket", [this] {
			keep_socket();
			wait();
			accept_all();
			for (Client &c : clients_)
				serve(c);
			clients_.remove_if([](const Client &c) { return c.done; });
		});
	}
	clients_.clear();
	socket_.reset();
}

// Takes the socket when nobody else has it, also after somebody removed it.
void ControlServer::keep_socket()
{
	if (clock_.monotonic() < look_at_)
		return;
	look_at_ = clock_.monotonic() + limits_.look;
	if (socket_ && socket_->mine())
		return;
	socket_.reset();
	auto claimed = ControlSocket::claim(state_dir_, owner_);
	if (claimed) {
		socket_.emplace(std::move(*claimed));
		complained_.clear();
		return;
	}
	if (complained_ != claimed.error().message) {
		complained_ = claimed.error().message;
		log_error("slurm-k8s(1) cannot ask this slurmctld: %s", complained_.c_str());
	}
}

void ControlServer::wait()
{
	std::vector<pollfd> fds{{wakeup_->fd(), POLLIN, 0}};
	if (socket_ && clients_.size() < limits_.clients)
		fds.push_back({socket_->fd(), POLLIN, 0});
	Millis until = look_at_;
	for (const Client &c : clients_) {
		until = std::min(until, c.until);
		// A client that waits for an answer is only watched for going away (POLLHUP).
		const short events = !c.out.empty() ? POLLOUT : c.inquiry ? 0 : POLLIN;
		fds.push_back({c.fd.get(), events, 0});
	}
	const auto ms = std::clamp<std::int64_t>((until - clock_.monotonic()).count() + 1, 0, INT_MAX);
	(void)::poll(fds.data(), fds.size(), static_cast<int>(ms));
	wakeup_->drain();
	// Who hung up gets no answer.
	auto client = clients_.begin();
	for (std::size_t i = fds.size() - clients_.size(); i < fds.size(); i++, client++)
		client->done = fds[i].revents & (POLLERR | POLLHUP) && !(fds[i].revents & POLLIN);
}

void ControlServer::accept_all()
{
	while (socket_ && clients_.size() < limits_.clients) {
		Fd fd = socket_->accept();
		if (!fd)
			return;
		auto uid = peer_uid(fd.get());
		if (!uid)
			continue;
		Client &c = clients_.emplace_back();
		c.fd = std::move(fd);
		c.uid = *uid;
		c.until = clock_.monotonic() + limits_.read;
	}
}

void ControlServer::serve(Client &c)
{
	if (!c.done && c.out.empty() && !c.inquiry)
		read(c);
	if (!c.done && c.inquiry)
		think(c);
	if (!c.done && !c.out.empty())
		write(c);
	if (clock_.monotonic() >= c.until)
		c.done = true;
}

void ControlServer::read(Client &c)
{
	char buffer[1024];
	for (;;) {
		const ssize_t n = ::recv(c.fd.get(), buffer, sizeof(buffer), 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			c.done = true;
			return;
		}
		c.in.append(buffer, static_cast<std::size_t>(n));
		if (const auto end = c.in.find('\n'); end != c.in.npos)
			return begin(c, std::string_view(c.in).substr(0, end));
		if (c.in.size() > limits_.request)
			return answer(c, control_error("the request is too long"));
	}
}

void ControlServer::begin(Client &c, std::string_view line)
{
	if (c.uid != 0 && c.uid != owner_) {
		log_warning("%s tried to ask on %s", user_text(c.uid).c_str(), control_path(state_dir_).c_str());
		return answer(c, control_error("only root and SlurmUser may ask, not " + user_text(c.uid)));
	}
	auto body = Json::parse(line);
	if (!body || !body->is_object())
		return answer(c, control_error("the request is no JSON object"));
	c.until = clock_.monotonic() + limits_.think;
	c.inquiry = handler_({*body, c.uid, wakeup_});
}

void ControlServer::think(Client &c)
{
	if (c.inquiry->complete() || clock_.monotonic() >= c.until)
		answer(c, std::exchange(c.inquiry, nullptr)->reply());
}

void ControlServer::answer(Client &c, const Json &reply)
{
	c.out = reply.dump() + '\n';
	if (c.out.size() > limits_.reply)
		c.out = control_error("the answer is too long; ask for one node or one pod").dump() + '\n';
	c.until = clock_.monotonic() + limits_.write;
}

void ControlServer::write(Client &c)
{
	while (c.sent < c.out.size()) {
		const ssize_t n = ::send(c.fd.get(), c.out.data() + c.sent, c.out.size() - c.sent, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0)
			break;
		c.sent += static_cast<std::size_t>(n);
	}
	c.done = true;
}

} // namespace sk8::core
