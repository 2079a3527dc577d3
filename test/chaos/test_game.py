# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""What the administrator of a play does, whatever fails."""
import threading
from types import SimpleNamespace

from game import Game
from stands.waiting import StandError


class Hands(Game):
	"""A game without a stand: its administrator looks once. Pods "gone" and "held" were deleted by force; only one still holds something."""

	def __init__(self):  # pylint: disable=super-init-not-called
		self.users = self.nodes = self.stand = self
		self.lost, self.released, self.left, self.devices = {}, set(), {}, None
		looks = [True, False]
		self.closing, self.faults = SimpleNamespace(wait=lambda _: looks.pop()), SimpleNamespace(over=threading.Event())
		self.told, self.done = [], []
		self.story = self

	def undrain(self):
		raise StandError("slurmctld does not answer")

	def _ended_by_force(self):
		return {"gone", "held"}

	def holds(self):
		return ["k8s:stand/default/foreign0/held"]

	def run(self, *words):
		if words[-1] == "gone":
			raise StandError("no pod gone holds anything")
		self.done.append(words[-2:])

	def register_gpus(self):
		return ["n2"]

	def tell(self, text):
		self.told.append(text)


def test_administrator_does_everything_else_when_one_thing_cannot_be_done():
	game = Hands()
	game._administrate()
	assert game.done == [("release", "held")] and len(game.told) == 1


def test_pod_that_holds_nothing_any_more_does_not_keep_others_from_being_released():
	game = Hands()
	game.undrain = lambda: ()
	game._administrate()
	assert game.released == {"held"} and game.told == ["the kubelet of n2 had forgotten its GPUs; registered again"]
