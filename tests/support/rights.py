"""Calls without the rights of root, which may read and write every file."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")

VERSION_3 = 0x20080522
PASSES_OVER_MODES = 1 << 1 | 1 << 2
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH: the modes of files apply to whoever has neither."""


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("thread", ctypes.c_int))


class _Half(ctypes.Structure):
    """Half of the capabilities, as three sets of bits."""

    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def under_file_modes(call: Callable[[], Result]) -> Result:
    """Call with the modes of files in force, also as root.

    Linux keeps the rights of root by thread. They are given up in a thread of its own, and with it that ends: another
    user could read neither the folders of the test nor, often, the interpreter.
    """
    if os.geteuid() != 0:
        return call()
    with ThreadPoolExecutor(1, initializer=_give_up_rights) as thread:
        return thread.submit(call).result()


def _give_up_rights() -> None:
    libc = ctypes.CDLL(ctypes.util.find_library("c"), use_errno=True)
    header, halves = _Header(VERSION_3, 0), (_Half * 2)()
    _check(libc.capget(ctypes.byref(header), halves))
    for name in ("effective", "permitted", "inheritable"):
        setattr(halves[0], name, getattr(halves[0], name) & ~PASSES_OVER_MODES)
    _check(libc.capset(ctypes.byref(header), halves))


def _check(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
