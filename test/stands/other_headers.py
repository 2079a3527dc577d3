# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Our plugins, as headers of another build of the same Slurm release, or of another micro release, would make them."""
import glob
import os
import re
import subprocess

from stands.build import build_folder


def slurm_source():
	with open(os.path.join(build_folder(), "Makefile"), encoding="utf-8") as file:
		return re.search(r"^SLURM_SOURCE = (.+)$", file.read(), re.M).group(1)


def copy_with_field(struct, behind, folder):
	"""A copy of the header that defines this struct, with one member more behind that one, or at the end."""
	source = slurm_source()
	begins = re.compile(rf"^(typedef )?struct {struct} ?{{.*\n", re.M)
	for part in ("slurm", "src/common", "src/interfaces", "src/slurmctld"):
		for path in glob.glob(os.path.join(source, part, "*.h")):
			with open(path, encoding="utf-8") as file:
				text = file.read()
			found = begins.search(text)
			if not found:
				continue
			rest = text[found.end():]
			at = re.search(rf"^\t[^;\n]*\b{behind};.*\n" if behind else r"^}", rest, re.M)
			at = at.end() if behind else at.start()
			copy = os.path.join(folder, os.path.relpath(path, source))
			os.makedirs(os.path.dirname(copy))
			with open(copy, "w", encoding="utf-8") as file:
				file.write(text[:found.end()] + rest[:at] + "\tchar *one_more;\n" + rest[at:])
			return
	raise AssertionError(f"{source} has no struct {struct}")


def _build(headers, out):
	subprocess.run(["make", "-s", "-C", build_folder(), "other-plugins", f"SK8_HEADERS={headers}", f"SK8_OUT={out}"], check=True)
	return out


def build_with_field(struct, behind, tmp_path):
	"""The plugins, as other headers would make them."""
	headers, out = str(tmp_path / "headers"), str(tmp_path / "out")
	copy_with_field(struct, behind, headers)
	return _build(headers, out)


def build_for(release, tmp_path):
	"""The plugins, as configure and Slurm's headers of this release would make them: "22.05.9"."""
	number = "0x%02x%02x%02x" % tuple(map(int, release.split(".")))
	for name, macro, value in (("slurm/slurm_version.h", "SLURM_VERSION_NUMBER", number), ("sk8_config.h", "SK8_SLURM_VERSION", f'"{release}"')):
		path = tmp_path / "headers" / name
		path.parent.mkdir(parents=True, exist_ok=True)
		path.write_text(f"#include_next <{name}>\n#undef {macro}\n#define {macro} {value}\n", encoding="utf-8")
	return _build(str(tmp_path / "headers"), str(tmp_path / "out"))
