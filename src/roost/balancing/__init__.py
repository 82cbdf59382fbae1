"""Which server takes the next user. Pure: no I/O, no store call."""

from roost.balancing.balancer import STRATEGIES, Explanation, LoadBalancer
from roost.balancing.ring import HashRing
from roost.balancing.server import Fleet, Refusal, Server
from roost.balancing.slots import ConsistentHash

__all__ = [
    "STRATEGIES",
    "ConsistentHash",
    "Explanation",
    "Fleet",
    "HashRing",
    "LoadBalancer",
    "Refusal",
    "Server",
]
