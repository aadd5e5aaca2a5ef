"""The addresses that webhooks may have: HTTPS on the public internet, unless a setting allows more."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import SplitResult, urlsplit

from afterword.errors import ArgumentInvalid

_NAT64 = ip_network("64:ff9b::/96")
# Translates to IPv4 addresses of the local network (RFC 8215). Older versions of Python take it for a public one.
_LOCAL_NAT64 = ip_network("64:ff9b:1::/48")
_LONGEST_URL = 2000


class AddressRefused(Exception):
    """A webhook's address that nothing is posted to. The message says why, and holds no address."""


@dataclass(frozen=True, slots=True)
class AddressRules:
    """Which addresses besides public ones a post may go to.

    `allow_loopback` allows http and https to this machine, `allow_private` https to private networks.
    """

    allow_loopback: bool = False
    allow_private: bool = False

    def check(self, address: str, *, is_encrypted: bool) -> None:
        """Raise `AddressRefused` for an IP address that is not allowed."""
        ip = _embedded(ip_address(address))
        if ip.is_loopback:
            if not self.allow_loopback:
                raise AddressRefused("it is an address of this machine, which webhooks.allow_loopback allows")
        elif not is_encrypted:
            raise AddressRefused("only https leaves this machine")
        elif ip.is_multicast or ip.is_unspecified or ip.is_reserved or ip.is_link_local:
            raise AddressRefused("it is no address of one machine on a network")
        elif (not ip.is_global or ip in _LOCAL_NAT64) and not self.allow_private:
            raise AddressRefused("it is an address of a private network, which webhooks.allow_private allows")


@dataclass(frozen=True, slots=True)
class WebhookUrl:
    """The parts of a webhook's URL."""

    is_encrypted: bool
    host: str
    port: int
    path: str

    @property
    def host_header(self) -> str:
        """The value of the Host header."""
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return shown if self.port == (443 if self.is_encrypted else 80) else f"{shown}:{self.port}"

    async def addresses(self, rules: AddressRules) -> list[str]:
        """Return the IP addresses of the host. Raises `AddressRefused` if one is not allowed or there is none.

        The caller connects to one of them and not to the name, which might mean another address a moment later.
        """
        loop = asyncio.get_running_loop()
        try:
            resolved = await loop.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        except OSError:
            raise AddressRefused("its host has no address") from None
        addresses = [str(entry[4][0]).partition("%")[0] for entry in resolved]
        for address in addresses:
            rules.check(address, is_encrypted=self.is_encrypted)
        return addresses


def parse_webhook_url(url: str, rules: AddressRules) -> WebhookUrl:
    """Return the parts of a webhook's URL. Raises `ArgumentInvalid` for one that can never be posted to."""
    parts, port = _split(url)
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise ArgumentInvalid("the URL of a webhook begins with https://")
    if parts.username is not None or parts.fragment:
        raise ArgumentInvalid("the URL of a webhook has no user and no fragment")
    is_encrypted = parts.scheme == "https"
    if not is_encrypted and not rules.allow_loopback:
        raise ArgumentInvalid("the URL of a webhook begins with https://; webhooks.allow_loopback allows http to here")
    _check_host(parts.hostname, rules, is_encrypted=is_encrypted)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return WebhookUrl(is_encrypted, parts.hostname, port or (443 if is_encrypted else 80), path)


def _split(url: str) -> tuple[SplitResult, int | None]:
    """Return the parts of a URL and its port. Raises `ArgumentInvalid`."""
    has_blanks = any(character <= " " or character == "\x7f" for character in url)
    if len(url) > _LONGEST_URL or not url.isascii() or has_blanks:
        raise ArgumentInvalid(f"the URL of a webhook has at most {_LONGEST_URL} ASCII characters and no spaces")
    try:
        parts = urlsplit(url)
        return parts, parts.port
    except ValueError:
        raise ArgumentInvalid("this is no URL") from None


def _check_host(host: str, rules: AddressRules, *, is_encrypted: bool) -> None:
    """Raise `ArgumentInvalid` if a host is an IP address that is not allowed. Names are looked up before each post."""
    try:
        ip_address(host)
    except ValueError:
        return
    try:
        rules.check(host, is_encrypted=is_encrypted)
    except AddressRefused as error:
        raise ArgumentInvalid(f"nothing is posted to {host}: {error}") from None


def _embedded(ip: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Return the IPv4 address that an IPv6 address stands for, if it stands for one."""
    if isinstance(ip, IPv4Address):
        return ip
    if ip in _NAT64:
        return IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None) or ip
