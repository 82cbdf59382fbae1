"""Whether the namespace of each pod lets it in: the Pod Security Standards of Kubernetes.

https://kubernetes.io/docs/concepts/security/pod-security-standards/
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Object = dict[str, Any]

LABEL = "pod-security.kubernetes.io/enforce"
LEVELS = ("privileged", "baseline", "restricted")
BASELINE_CAPABILITIES = {
    *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE"),
    *("SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
}
RESTRICTED_VOLUMES = {
    *(
        "configMap",
        "csi",
        "downwardAPI",
        "emptyDir",
        "ephemeral",
        "persistentVolumeClaim",
        "projected",
        "secret",
    ),
}


def pod_security_faults(objects: list[Object]) -> Iterator[str]:
    """What admission would refuse, by the label of the namespace that each pod is in."""
    levels = {
        one["metadata"]["name"]: one["metadata"].get("labels", {}).get(LABEL, "privileged")
        for one in objects
        if one["kind"] == "Namespace"
    }
    for title, namespace, spec in all_pods(objects):
        level = levels.get(namespace, "")
        if level not in LEVELS:
            yield f"{title}: namespace {namespace!r} is not made here, or enforces {level!r}"
        else:
            yield from (f"{title}: {level} refuses {what}" for what in refused(spec, level))


def all_pods(objects: list[Object]) -> Iterator[tuple[str, str, Object]]:
    """(title, namespace, the pod's spec) of everything that runs, also what is not ours."""
    for one in objects:
        name, namespace = f"{one['kind']}/{one['metadata']['name']}", one["metadata"].get("namespace", "")
        template = (one.get("spec") or {}).get("template") or {}
        if one["kind"] == "Fleet":
            yield name, namespace, _with_agones_ports(template["spec"])
        elif "containers" in template.get("spec", {}):
            yield name, namespace, template["spec"]


def _with_agones_ports(server: Object) -> Object:
    """The pod that Agones makes: each port gets one of the node, unless its policy is None."""
    spec: Object = dict(server["template"]["spec"])
    ports = [
        {"containerPort": port["containerPort"], "hostPort": 7000}
        for port in server.get("ports", ())
        if port.get("portPolicy", "Dynamic") != "None"
    ]
    return spec | {"containers": [*spec["containers"], {"name": "ports", "ports": ports} | _FLAWLESS]}


_FLAWLESS = {"securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}}


def refused(spec: Object, level: str) -> Iterator[str]:
    """What this level refuses of a pod."""
    if level != "privileged":
        yield from _beyond_baseline(spec)
    if level == "restricted":
        yield from _beyond_restricted(spec)


def _containers(spec: Object) -> Iterator[tuple[Object, Object]]:
    for one in (*spec["containers"], *spec.get("initContainers", ())):
        yield one, one.get("securityContext", {})


def _seccomp(context: Object) -> str:
    found: str = context.get("seccompProfile", {}).get("type", "")
    return found


def _beyond_baseline(spec: Object) -> Iterator[str]:
    yield from (word for word in ("hostNetwork", "hostPID", "hostIPC") if spec.get(word))
    yield from ("hostPath" for volume in spec.get("volumes", ()) if "hostPath" in volume)
    if _seccomp(spec.get("securityContext", {})) == "Unconfined":
        yield "seccomp Unconfined"
    for one, own in _containers(spec):
        yield from (f"hostPort {port['hostPort']}" for port in one.get("ports", ()) if port.get("hostPort"))
        added = set(own.get("capabilities", {}).get("add", ())) - BASELINE_CAPABILITIES
        yield from (f"capability {name}" for name in sorted(added))
        if own.get("privileged"):
            yield "privileged"
        if _seccomp(own) == "Unconfined":
            yield "seccomp Unconfined"


def _beyond_restricted(spec: Object) -> Iterator[str]:
    pod = spec.get("securityContext", {})
    for volume in spec.get("volumes", ()):
        yield from (f"volume {kind}" for kind in sorted(volume.keys() - RESTRICTED_VOLUMES - {"name"}))
    for one, own in _containers(spec):
        name, both = one["name"], pod | own
        if own.get("allowPrivilegeEscalation") is not False:
            yield f"{name} without allowPrivilegeEscalation: false"
        if both.get("runAsNonRoot") is not True or both.get("runAsUser") == 0:
            yield f"{name} that may run as root"
        if _seccomp(both) not in ("RuntimeDefault", "Localhost"):
            yield f"{name} without seccomp"
        if "ALL" not in own.get("capabilities", {}).get("drop", ()):
            yield f"{name} that does not drop ALL capabilities"
        added = set(own.get("capabilities", {}).get("add", ())) - {"NET_BIND_SERVICE"}
        yield from (f"{name} with capability {word}" for word in sorted(added))
