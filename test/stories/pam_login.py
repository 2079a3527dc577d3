# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""What sshd does with PAM as somebody logs in: pam_login.py FOLDER USER

Asks the service "sshd" of FOLDER whether USER may come, in this very process. Prints what PAM tells the user, and its
environment for them. Then it is a process of theirs that stays; or it ends with PAM's code."""
import ctypes
import itertools
import os
import pwd
import sys

SERVICE = b"sshd"


class Message(ctypes.Structure):
	_fields_ = [("style", ctypes.c_int), ("text", ctypes.c_char_p)]


class Response(ctypes.Structure):
	_fields_ = [("text", ctypes.c_char_p), ("code", ctypes.c_int)]


TALK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.POINTER(Message)), ctypes.POINTER(ctypes.c_void_p), ctypes.c_void_p)


class Conversation(ctypes.Structure):
	_fields_ = [("talk", TALK), ("data", ctypes.c_void_p)]


def main(folder, user):
	pam, libc = ctypes.CDLL("libpam.so.0", ctypes.RTLD_GLOBAL), ctypes.CDLL(None)  # Slurm's module does not name libpam
	libc.calloc.restype = ctypes.c_void_p
	pam.pam_getenvlist.restype = ctypes.POINTER(ctypes.c_char_p)
	pam.pam_strerror.restype = ctypes.c_char_p

	@TALK
	def talk(number, messages, responses, _):
		for i in range(number):
			print("PAM says:", messages[i].contents.text.decode(), flush=True)
		responses[0] = libc.calloc(number, ctypes.sizeof(Response))  # who asked frees it
		return 0

	handle, conversation = ctypes.c_void_p(), Conversation(talk, None)
	code = pam.pam_start_confdir(SERVICE, user.encode(), ctypes.byref(conversation), folder.encode(), ctypes.byref(handle)) \
		or pam.pam_acct_mgmt(handle, 0)
	if code:
		print("PAM:", pam.pam_strerror(handle, code).decode(), flush=True)
		return code
	for line in itertools.takewhile(bool, pam.pam_getenvlist(handle)):
		print(line.decode())
	print("welcome", flush=True)
	about = pwd.getpwnam(user)
	os.setgid(about.pw_gid)
	os.setuid(about.pw_uid)
	os.execvp("sleep", ("sleep", "600"))


if __name__ == "__main__":
	sys.exit(main(*sys.argv[1:]))
