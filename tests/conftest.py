"""Puts this folder on the path: worlds that several test packages use lie here."""

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # started in a shell's background, where Ctrl-C is ignored: programs under test would inherit that
    signal.signal(signal.SIGINT, signal.default_int_handler)
