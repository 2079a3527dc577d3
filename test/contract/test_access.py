# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
import pytest
from kube import binding, failure, pod

RBAC = "/apis/rbac.authorization.k8s.io/v1"


def test_unknown_token_is_unauthorized(kube, ns):
	failure(kube.without_certificate("no-such-token").get(ns.path()), 401, "Unauthorized", "Unauthorized")


def test_nobody_reads_pods(kube, ns):
	assert kube.without_certificate().get(ns.path()).code in (401, 403)  # 403 if anonymous users are let in


def test_denial_names_user_verb_resource_and_place(kube, ns):
	user = kube.impersonating("jane")
	who = 'User "jane" cannot'
	failure(user.get(ns.path()), 403, "Forbidden",
		f'pods is forbidden: {who} list resource "pods" in API group "" in the namespace "{ns.name}"', kind="pods")
	failure(user.get(ns.path(name="p")), 403, "Forbidden",
		f'pods "p" is forbidden: {who} get resource "pods" in API group "" in the namespace "{ns.name}"',
		name="p", kind="pods")
	failure(user.post(ns.path(name="p", sub="binding"), binding("p")), 403, "Forbidden",
		f'pods "p" is forbidden: {who} create resource "pods/binding" in API group "" in the namespace "{ns.name}"',
		name="p", kind="pods")
	failure(user.get("/api/v1/nodes"), 403, "Forbidden",
		f'nodes is forbidden: {who} list resource "nodes" in API group "" at the cluster scope', kind="nodes")
	failure(user.get("/apis/coordination.k8s.io/v1/leases"), 403, "Forbidden",
		f'leases.coordination.k8s.io is forbidden: {who} list resource "leases" in API group "coordination.k8s.io" '
		"at the cluster scope", group="coordination.k8s.io", kind="leases")
	failure(user.get(ns.path(), watch="1"), 403, "Forbidden",
		f'pods is forbidden: {who} watch resource "pods" in API group "" in the namespace "{ns.name}"', kind="pods")


@pytest.fixture
def grant(kube, ns):
	"""grant(rules, user) in the namespace; grant(rules, user, everywhere=True) in all."""
	made = []

	def act(rules, user, everywhere=False):
		kind = "ClusterRole" if everywhere else "Role"
		base = RBAC if everywhere else f"{RBAC}/namespaces/{ns.name}"
		meta = {"name": f"{ns.name}-{len(made)}"}
		subjects = [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}]
		ref = {"kind": kind, "name": meta["name"], "apiGroup": "rbac.authorization.k8s.io"}
		for path, body in ((f"{base}/{kind.lower()}s", {"metadata": meta, "rules": rules}),
				(f"{base}/{kind.lower()}bindings", {"metadata": meta, "roleRef": ref, "subjects": subjects})):
			answer = kube.post(path, body)
			assert answer.code == 201, answer
			made.append(f"{path}/{meta['name']}")
	yield act
	for path in made:
		kube.delete(path)


def allowed(user, code, call, wait=50):
	"""The real server learns of new roles a moment later."""
	for _ in range(wait):
		answer = call()
		if answer.code == code:
			return answer
	raise AssertionError(answer)


def test_role_opens_its_namespace_only(kube, ns, grant):
	grant([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}], "joe")
	user = kube.impersonating("joe")
	allowed(user, 200, lambda: user.get(ns.path()))
	assert user.get("/api/v1/namespaces/default/pods").code == 403
	assert user.get("/api/v1/pods").code == 403
	assert user.post(ns.path(), pod("a")).code == 403


def test_subresources_are_granted_apart(kube, ns, grant):
	ns.add(pod("a"))
	user = kube.impersonating("binder")
	grant([{"apiGroups": [""], "resources": ["pods/binding"], "verbs": ["create"]},
		{"apiGroups": [""], "resources": ["pods/status"], "verbs": ["patch"]}], "binder", everywhere=True)
	allowed(user, 201, lambda: user.post(ns.path(name="a", sub="binding"), binding("a")))
	assert user.patch(ns.path(name="a", sub="status"), {"status": {"reason": "x"}}).code == 200
	assert user.patch(ns.path(name="a"), {"metadata": {"labels": {"x": "y"}}}).code == 403
	assert user.get(ns.path(name="a")).code == 403


def test_resource_names_narrow_a_rule(kube, ns, grant):
	ns.add({"metadata": {"name": "one"}}, "configmaps")
	ns.add({"metadata": {"name": "two"}}, "configmaps")
	grant([{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["one"], "verbs": ["get"]}], "narrow")
	user = kube.impersonating("narrow")
	allowed(user, 200, lambda: user.get(ns.path("configmaps", "one")))
	assert user.get(ns.path("configmaps", "two")).code == 403


def review(user, **attributes):
	answer = user.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {"apiVersion": "authorization.k8s.io/v1",
		"kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": attributes}})
	assert answer.code == 201 and answer["kind"] == "SelfSubjectAccessReview"
	assert answer["spec"]["resourceAttributes"] == attributes
	return answer["status"]["allowed"]


def test_access_review_answers_for_the_asker(kube, ns):
	create = {"verb": "create", "resource": "pods", "subresource": "binding", "namespace": ns.name}
	assert review(kube, **create) is True
	assert review(kube.impersonating("jane"), **create) is False


def test_everybody_may_discover(kube):
	user = kube.impersonating("jane")
	for path in ("/version", "/api", "/apis", "/api/v1", "/healthz"):
		assert user.get(path).code in (200, 403), path
	assert kube.get("/version").code == 200
