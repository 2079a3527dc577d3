# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""GRES of a stand's nodes, whose devices are empty files.

"gpu:a100:2,gpu:h100:2,shard:8,token:5": GPUs have devices, shards are of them, anything else is counted only.
"gpu@0-7:4": GPUs at those cores; Slurm keeps a topology of them then.
"""
import os
import re


def gres_lines(text, folder):
	"""What slurm.conf says of each node, GresTypes, and gres.conf. Makes the devices in folder."""
	os.makedirs(folder, exist_ok=True)
	names, lines, device = [], [], 0
	for word in text.split(","):
		name, *kind, count = word.split(":")
		name, _, cores = name.partition("@")
		names += [name] if name not in names else []
		of_type = f" Type={kind[0]}" if kind else ""
		if name != "gpu":
			lines.append(f"Name={name}{of_type} Count={count}")
			continue
		for _ in range(int(count)):
			path = os.path.join(folder, f"gpu{device}")
			with open(path, "w", encoding="utf-8"):
				device += 1
			lines.append(f"Name=gpu{of_type} File={path}" + (f" Cores={cores}" if cores else ""))
	return "Gres=" + re.sub("@[-0-9]+", "", text), ",".join(names), "\n".join(lines) + "\n"
