# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""GRES of a stand's nodes, whose devices are links to /dev/null: slurmd wants devices, and tells jobs of nothing else. Where
Slurm denies jobs the devices of others, they are devices of numbers that no driver has.

"gpu:a100:2,gpu:h100:2,shard:8,hca:2,token:5": GPUs and HCAs have devices, shards are of GPUs, anything else is counted only.
"gpu@0-7:4": GPUs at those cores; Slurm keeps a topology of them then.
"""
import os
import re
import stat
from collections import Counter

WITH_DEVICES = ("gpu", "hca")
NOBODYS_MAJOR = 127  # "local/experimental use" (Linux, admin-guide/devices.txt)


def gres_lines(text, folder, denied=False):
	"""What slurm.conf says of each node, GresTypes, and gres.conf. Makes the devices in folder; denied: Slurm may deny them."""
	os.makedirs(folder, exist_ok=True)
	names, lines, made = [], [], Counter()
	for word in text.split(","):
		name, *kind, count = word.split(":")
		name, _, cores = name.partition("@")
		names += [name] if name not in names else []
		of_type = f" Type={kind[0]}" if kind else ""
		if name not in WITH_DEVICES:
			lines.append(f"Name={name}{of_type} Count={count}")
			continue
		for _ in range(int(count)):
			path = os.path.join(folder, f"{name}{made[name]}")
			if denied:
				os.mknod(path, stat.S_IFCHR, os.makedev(NOBODYS_MAJOR, sum(made.values())))
				os.chmod(path, 0o666)
			else:
				os.symlink("/dev/null", path)
			made[name] += 1
			lines.append(f"Name={name}{of_type} File={path}" + (f" Cores={cores}" if cores else ""))
	return "Gres=" + re.sub("@[-0-9]+", "", text), ",".join(names), "\n".join(lines) + "\n"


def devices(text):
	"""The indices of GPUs that Slurm or slurm-k8s name: "gpu:a100:3(IDX:0-1,3)", "gpu:2(0-1)"."""
	return {number for part in re.findall(r"gpu[^,()]*\((?:IDX:)?([-\d,]+)\)", text.replace("(null)", "")) for number in indices(part)}


def indices(text):
	"""0-1,3 as a set."""
	found = set()
	for word in filter(None, text.split(",")):
		first, _, last = word.partition("-")
		found |= set(range(int(first), int(last or first) + 1))
	return found
