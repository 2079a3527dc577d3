# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""A seed means the same steps every time."""
import plan
from faults import Faults
from nodes import Nodes
from users import Users


def test_same_seed_gives_the_same_steps_and_another_seed_gives_others():
	assert plan.make(7, 60, "real") == plan.make(7, 60, "real")
	assert plan.make(7, 60, "real") != plan.make(8, 60, "real")


def test_there_is_a_plan_for_every_seed_also_when_all_is_broken_at_once():
	for seed in range(300):
		assert plan.make(seed, 60, "sim")


def test_a_target_has_one_fault_at_a_time_and_every_target_gets_one():
	steps = [step for step in plan.make(3, 3600, "real") if step.verb in {**plan.DAEMON_FAULTS, **plan.NETWORK_FAULTS}]
	assert {step.target for step in steps} == set(plan.DAEMONS["real"])
	until = {}
	for step in steps:
		assert until.get(step.target, 0) < step.at
		until[step.target] = step.at + step.about["seconds"]


def test_users_touch_only_what_was_made_before():
	made = set()
	for step in plan.make(3, 600, "real"):
		if step.verb in plan.LOAD:
			made.add(step.target)
		elif step.verb in {*plan.ON_PODS, *plan.ON_FOREIGN}:
			assert step.target in made


def test_every_verb_is_what_one_of_those_who_play_can_do():
	for sharing in ("none", "dedicated", "mixed"):
		for verb in {step.verb for step in plan.make(3, 3600, "real", sharing)}:
			assert sum(hasattr(who, verb) for who in (Faults, Nodes, Users)) == 1, verb
