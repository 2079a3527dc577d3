# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""What of the things that memcheck has seen is our mistake.

Only stacks with a frame of ours count. A leak is what is lost (no pointer to it is left), or a place that keeps more
blocks at each of the last looks than at the one before, though nothing is left to keep: caches, pools and what is
remembered for a minute grow and shrink, a leak only grows. Blocks, because the one block of something that is replaced
(the last page of metrics) may well be a little longer each time.
"""
from memcheck import is_ours

LEAST, MOST = 6, 10  # looks that are judged
LONG_ENOUGH = 90  # seconds between the first and the last of them: what is remembered for a minute has gone meanwhile


def ours(frames):
	return tuple(frame for frame in frames if is_ours(frame))


def by_stack(grown, size=lambda one: one.grown):
	"""{our frames: bytes} of one look; with another size {our frames: the sum of it}."""
	found = {}
	for one in grown:
		if stack := ours(one.frames):
			found[stack] = found.get(stack, 0) + size(one)
	return found


def lost(looks):
	"""What is lost for ever, as {our frames: bytes}."""
	return by_stack([one for grown in looks for one in grown if one.kind == "definitely lost" and one.grown > 0])


def growing(looks):
	"""Where there are more blocks at each of the last looks, as {our frames: [blocks, ...]}."""
	last = [by_stack(grown, lambda one: one.blocks) for grown in looks[-MOST:]]
	if len(last) < LEAST:
		raise ValueError(f"{len(last)} looks are too few to tell a leak from what comes and goes")
	return {stack: [one[stack] for one in last] for stack in last[0] if all(one.get(stack, 0) > 0 for one in last)}


def wrong(errors):
	"""Invalid reads and the like, as (what, our frames); memcheck tells each once."""
	return [(error.what, stack) for error in errors if (stack := ours(error.frames))]


def stack_text(stack, most=8):
	return "".join(f"    {frame.function[:120]} ({frame.place})\n" for frame in stack[:most])


def sentences(looks, errors):
	"""One for each finding, with its stack; nothing if all is well."""
	return [f"{size} bytes are lost\n{stack_text(stack)}" for stack, size in lost(looks).items()] + \
		[f"grows in each round, by {' '.join(map(str, blocks))} blocks\n{stack_text(stack)}"
			for stack, blocks in growing(looks).items()] + \
		[f"{what}\n{stack_text(stack)}" for what, stack in wrong(errors)]
