# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""How soon one side hears of the other's node among a thousand."""
import statistics
import time

import pytest
from node import Node
from stands.waiting import wait_for

NODES = 1000
TIMES = 5


@pytest.mark.apis("sim")
@pytest.mark.slow
def test_cordon_drains_and_drain_cordons_within_a_second_among_a_thousand_nodes(many):
	def took(act, done):
		began = time.monotonic()
		act()
		wait_for("the other side", done, 20)
		return time.monotonic() - began
	node = Node(many, "f1")
	assert len(many.api.get("/api/v1/nodes")["items"]) == NODES + 2
	cordon, drain = [], []
	for _ in range(TIMES):
		cordon.append(took(node.cordon, lambda: node.drained))
		took(node.uncordon, lambda: not node.drained)
		drain.append(took(node.drain, lambda: node.cordoned))
		took(node.resume, lambda: not node.cordoned)
	print(f"cordon -> drain {sorted(cordon)}, drain -> cordon {sorted(drain)} seconds")
	assert statistics.median(cordon) < 1 and statistics.median(drain) < 1, (cordon, drain)
