"""Client addresses: trusted proxies, and the addresses that count as one client."""

import ipaddress
from collections.abc import Iterable

from trilens.errors import BadInput

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
IPV6_SITE = 64  # a site has a /64 network at least, so its single addresses do not identify it


class Proxies:
    """The proxies whose X-Forwarded-For is believed."""

    def __init__(self, addresses: Iterable[str] = ()) -> None:
        self.addresses = list(addresses)
        self._networks = [_network(address) for address in self.addresses]

    def __bool__(self) -> bool:
        return bool(self._networks)

    def __contains__(self, host: str) -> bool:
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return False
        return any(address in network for network in self._networks)


def client_name(host: str) -> str:
    """What identifies the client at an address: the address itself, for IPv6 its /64 network."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if address.version == 4:
        return host
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((int(address), IPV6_SITE), strict=False))


def _network(address: str) -> Network:
    try:
        return ipaddress.ip_network(address)
    except ValueError as error:
        raise BadInput(f"--proxy is {address!r} ({error}); expected an address such as 10.0.0.5 or 10.0.0.0/8") from error
