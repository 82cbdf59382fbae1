"""What `deploy/kubernetes` says, and what is wrong with it: functions of objects; a test breaks a copy."""

from __future__ import annotations

import copy
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator
from kubernetes_validate.utils import schema_contents
from referencing import Registry, Resource

from roost.core.errors import InvalidSettings
from roost.settings import NAMES, Loaded, Settings, variable
from roost.web.catalogue import declared
from roost.web.ops import OPS_PORT_ABOVE
from tests.deploy.commands import faults_of_command
from tests.deploy.kustomize import build
from tests.deploy.pod_security import pod_security_faults

KUBERNETES = Path(__file__).parents[2] / "deploy" / "kubernetes"
OVERLAYS = tuple(sorted(path.name for path in (KUBERNETES / "overlays").iterdir()))
SCHEMAS = "1.32.0"
"""Of the Kubernetes whose schemas objects are checked against; preStop `sleep` is from 1.30 on."""
FIELDS = {
    "ExternalSecret": ("spec.secretStoreRef.name", "spec.target.name", "spec.data.0.remoteRef.key"),
    "ScaledObject": ("spec.scaleTargetRef.name", "spec.triggers.0.type", "spec.triggers.0.metadata.query"),
    "ServiceMonitor": ("spec.selector", "spec.endpoints.0.port", "spec.endpoints.0.path"),
    "PrometheusRule": ("spec.groups.0.name", "spec.groups.0.rules.0.expr"),
    "Fleet": (
        "spec.replicas",
        "spec.template.spec.ports.0.containerPort",
        "spec.template.spec.template.spec",
    ),
    "FleetAutoscaler": ("spec.fleetName", "spec.policy.type", "spec.policy.buffer.bufferSize"),
}
"""Of custom resources, which have no published schema: what we use of them must be there."""
KNOWN = {
    "ExternalSecret": (
        "external-secrets.io/v1",
        "refreshInterval refreshPolicy secretStoreRef target data dataFrom",
    ),
    "ScaledObject": (
        "keda.sh/v1alpha1",
        "scaleTargetRef pollingInterval cooldownPeriod initialCooldownPeriod idleReplicaCount "
        "minReplicaCount maxReplicaCount advanced triggers fallback",
    ),
    "ServiceMonitor": (
        "monitoring.coreos.com/v1",
        "jobLabel targetLabels podTargetLabels endpoints selector selectorMechanism namespaceSelector "
        "sampleLimit targetLimit labelLimit labelNameLengthLimit labelValueLengthLimit "
        "keepDroppedTargets attachMetadata scrapeClass scrapeProtocols bodySizeLimit",
    ),
    "PrometheusRule": ("monitoring.coreos.com/v1", "groups"),
    "Fleet": ("agones.dev/v1", "replicas allocationOverflow strategy scheduling priorities template"),
    "FleetAutoscaler": ("autoscaling.agones.dev/v1", "fleetName policy sync"),
}
"""Their version, and the fields of their `spec`: an operator drops one that it does not know."""
SECRETS = {
    "store": "rediss://roost:a-password@store.example:6379",
    "database": "postgresql://roost:a-password@db.example:5432/roost",
    "api-token": "an-example-of-a-token",
    "read-token": "an-example-of-a-reader",
    "wire-secret": "an-example-of-a-secret",
    "queue-keys": "a:a25vd24tdG8tZXZlcnlib2R5LXF1ZXVl",
    "ticket-keys": "a:a25vd24tdG8tZXZlcnlib2R5LXRpY2s=",
    "alerts-webhooks": "slack=https://hooks.slack.com/services/T/B/x",
}
"""By file of the mounted Secret."""
SECRETS_FOLDER = "/run/secrets/roost/"
ROLES = ("gateway", "manager", "gate", "gameserver", "entity", "orders")
PROBES = ("startupProbe", "livenessProbe", "readinessProbe")
PAGES = ("/healthz", "/readyz")
METRICS = frozenset(sample for one in declared() for sample in one.samples)
_NAME = re.compile(r"\b(?:roost|queue|ticket|gameserver|redis)_[a-z0-9_]+\b")
_REFERENCE = re.compile(r"\$\((\w+)\)")

Object = dict[str, Any]


def rendered(folder: Path) -> list[Object]:
    """What `kubectl kustomize` makes of a folder; without kubectl what our own reader makes."""
    kubectl = shutil.which("kubectl")
    if not kubectl:
        return build(folder)
    done = subprocess.run([kubectl, "kustomize", str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [found for found in yaml.safe_load_all(done.stdout) if found]


@cache
def _overlay(name: str) -> list[Object]:
    return rendered(KUBERNETES / "overlays" / name)


def objects_of(overlay: str) -> list[Object]:
    """As they would be applied; a copy that may be changed."""
    return copy.deepcopy(_overlay(overlay))


def named(objects: list[Object], kind: str, name: str) -> Object:
    return next(one for one in objects if one["kind"] == kind and one["metadata"]["name"] == name)


def title(one: Object) -> str:
    return f"{one['kind']}/{one['metadata']['name']}"


def at(value: Any, path: str) -> Any:
    """`spec.rules.0.host`; None where there is nothing."""
    for part in path.split("."):
        if isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        elif isinstance(value, Mapping) and part in value:
            value = value[part]
        else:
            return None
    return value


# -- objects as Kubernetes sees them


def schema_faults(objects: list[Object]) -> Iterator[str]:
    for one in objects:
        if one["kind"] in FIELDS:
            yield from _custom_faults(one)
            continue
        for error in _validator(one["apiVersion"], one["kind"]).iter_errors(one):
            yield f"{title(one)}: {'.'.join(map(str, error.path))}: {error.message}"


def _custom_faults(one: Object) -> Iterator[str]:
    yield from (f"{title(one)} lacks {path}" for path in FIELDS[one["kind"]] if at(one, path) is None)
    api, fields = KNOWN[one["kind"]]
    if one["apiVersion"] != api:
        yield f"{title(one)} is of {one['apiVersion']}, not of {api}"
    yield from (
        f"{title(one)}: spec.{field} is unknown" for field in one["spec"].keys() - set(fields.split())
    )


@cache
def _schema(name: str) -> Any:
    return schema_contents(f"kubernetes-json-schema/v{SCHEMAS}-local-strict/{name}.json", SCHEMAS)


@cache
def _registry() -> Any:
    """The definitions that every schema names, read once: the package would read them for each object."""
    return Resource.from_contents(_schema("_definitions")) @ Registry()


@cache
def _validator(api: str, kind: str) -> Any:
    """Of one kind of object, with fields that Kubernetes does not know refused."""
    group, _, version = api.rpartition("/")
    stem = "-".join(part for part in (kind.lower(), group.partition(".")[0], version) if part)
    schema = _schema(stem)
    return Draft202012Validator(schema, registry=Resource.from_contents(schema) @ _registry())


def pods(objects: list[Object]) -> Iterator[tuple[str, Object]]:
    """(title, pod's spec) of everything that runs our image."""
    for one in objects:
        spec = at(one, "spec.template.spec.template.spec" if one["kind"] == "Fleet" else "spec.template.spec")
        if isinstance(spec, dict) and _container(spec) is not None:
            yield title(one), spec


def _container(spec: Object) -> Object | None:
    return next((one for one in spec.get("containers", ()) if one["name"] == "roost"), None)


def containers(objects: list[Object]) -> Iterator[tuple[str, Object, Object]]:
    for name, spec in pods(objects):
        container = _container(spec)
        assert container is not None
        yield name, spec, container


# -- what they say of Roost


def environment_of(objects: list[Object], container: Object) -> dict[str, str]:
    """What the process finds: settings of the ConfigMap, then its own."""
    found: dict[str, str] = {}
    for source in container.get("envFrom", ()):
        name = source["configMapRef"]["name"]
        found |= named(objects, "ConfigMap", name)["data"]
    for one in container.get("env", ()):
        path = at(one, "valueFrom.fieldRef.fieldPath")
        found[one["name"]] = {"status.podIP": "10.0.3.7", "metadata.name": "pod-0"}.get(
            path, one.get("value", "")
        )
    return found


def settings_faults(objects: list[Object]) -> Iterator[str]:
    """Variables that no setting has, files that are no key of the Secret, values that settings refuse."""
    known = {variable(name) for name in NAMES}
    for name, spec, container in containers(objects):
        plain: dict[str, str] = {}
        for key, value in environment_of(objects, container).items():
            if not key.startswith("ROOST_"):
                continue
            if key.removesuffix("_FILE") not in known:
                yield f"{name}: {key} is no setting"
            elif key.endswith("_FILE"):
                secret = value.removeprefix(SECRETS_FOLDER)
                yield from (f"{name}: {key}: {fault}" for fault in _secret_faults(objects, spec, key, secret))
                plain[key.removesuffix("_FILE")] = SECRETS.get(secret, "")
            else:
                plain[key] = value
        try:
            Loaded.load(environ=plain)
        except InvalidSettings as error:
            yield f"{name}: {error}"


def _secret_faults(objects: list[Object], spec: Object, key: str, secret: str) -> Iterator[str]:
    if secret not in SECRETS:
        yield f"{secret} is not a file of the mounted secret"
    if _file_of(key.removeprefix("ROOST_").removesuffix("_FILE").lower()) != secret:
        yield f"it reads the key {secret}"
    name, key = at(_secret_volume(spec), "secret.secretName"), mounted(spec).get(secret, secret)
    keys = secret_keys(objects, name or "")
    if key not in keys:
        yield f"the Secret {name} has no key {key}, only {sorted(keys)}"


def _file_of(setting: str) -> str:
    """`alerts.webhooks`, or `alerts__webhooks` of a variable: `alerts-webhooks`."""
    return setting.replace("__", "-").replace(".", "-").replace("_", "-")


def _secret_volume(spec: Object) -> Object:
    return next((one for one in spec["volumes"] if one["name"] == "secrets"), {})


def mounted(spec: Object) -> dict[str, str]:
    """The files that a pod finds, and of which key of the Secret each is."""
    return {item["path"]: item["key"] for item in at(_secret_volume(spec), "secret.items") or ()}


def mount_faults(objects: list[Object]) -> Iterator[str]:
    """Keys that a pod reads and does not get, or gets and does not read; the store's user of another role."""
    for name, spec, container in containers(objects):
        if at(_secret_volume(spec), "secret.items") is None:
            yield f"{name}: it gets the whole Secret"
            continue
        names = {one["name"]: one.get("value", "") for one in container["env"]}
        read = {value.removeprefix(SECRETS_FOLDER) for key, value in names.items() if key.endswith("_FILE")}
        yield from (f"{name}: {file} is not mounted" for file in sorted(read - mounted(spec).keys()))
        for file, key in mounted(spec).items():
            own = f"store-{container['args'][0]}" if file == "store" else file
            if file not in read:
                yield f"{name}: it gets {key}, which it does not read"
            if key != own:
                yield f"{name}: {file} is the key {key}, not {own}"


def secret_keys(objects: list[Object], name: str) -> set[str]:
    """Keys of a Secret that is made here, or that External Secrets make."""
    keys: set[str] = set()
    for one in objects:
        if one["kind"] == "Secret" and re.fullmatch(rf"{name}(-[a-z0-9]{{10}})?", one["metadata"]["name"]):
            keys |= set(one["data"])
        if one["kind"] == "ExternalSecret" and at(one, "spec.target.name") == name:
            keys |= {row["secretKey"] for row in one["spec"]["data"]}
    return keys


def unread_secret_faults(objects: list[Object]) -> Iterator[str]:
    """Keys of Secrets that no setting has; the store's has one for each role that uses it."""
    known = {_file_of(name) for name in NAMES} - {"store"}
    known |= {f"store-{role}" for role in ROLES if role != "gameserver"}
    for one in objects:
        keys = secret_keys([one], at(one, "spec.target.name") or one["metadata"]["name"])
        for key in keys - known if one["kind"] in ("Secret", "ExternalSecret") else ():
            yield f"{title(one)}: no setting reads {key}"


def command_faults(objects: list[Object]) -> Iterator[str]:
    """Commands of containers and hooks that the command line would refuse."""
    for name, _, container in containers(objects):
        env = environment_of(objects, container)
        for reference in _REFERENCE.findall(" ".join(container["args"])):
            if reference not in env:
                yield f"{name}: $({reference}) is set nowhere"
        yield from (f"{name}: {fault}" for fault in faults_of_command(_replaced(container["args"], env)))
        hook = at(container, "lifecycle.preStop.exec.command")
        if hook:
            program, *words = hook
            if program != "roost" or _REFERENCE.search(" ".join(words)):
                yield f"{name}: the stop hook is not `roost …` with nothing to be replaced: {hook}"
            yield from (f"{name}: stop hook: {fault}" for fault in faults_of_command(words))


def _replaced(words: list[str], env: Mapping[str, str]) -> list[str]:
    return [_REFERENCE.sub(lambda found: env.get(found[1], ""), word) for word in words]


def ports_of(role: str) -> dict[str, int]:
    """Ports that a role listens on, by the names that manifests use."""
    own = getattr(Settings(), role)
    if role == "gateway":
        return {"http": own.port}
    if role == "manager":
        return {"metrics": own.port}
    first = "wire" if role in ("entity", "orders") else "ws"
    more = {"tcp": own.tcp_port} if role == "gate" else {}
    return {first: own.port, "metrics": own.port + OPS_PORT_ABOVE} | more


def port_faults(objects: list[Object]) -> Iterator[str]:
    """Ports that the role does not listen on, probes of pages that are not served, Services to nowhere."""
    for name, _, container in containers(objects):
        role = container["args"][0]
        if role not in ROLES:
            continue  # an unknown command, which is said elsewhere
        given = {one["name"]: one["containerPort"] for one in container["ports"]}
        if given != ports_of(role):
            yield f"{name}: ports {given}, but it listens on {ports_of(role)}"
        for probe in PROBES if not name.startswith("Fleet") else ():
            asked = at(container, f"{probe}.httpGet") or {}
            if asked.get("path") not in PAGES or asked.get("port") not in ("http", "metrics"):
                yield f"{name}: {probe} asks {asked}"
    yield from _service_faults(objects)


def _service_faults(objects: list[Object]) -> Iterator[str]:
    for one in objects:
        role = str(at(one, "spec.selector.app.kubernetes.io/name") or "")
        if one["kind"] == "Service":
            role = one["spec"].get("selector", {}).get("app.kubernetes.io/name", "")
        if one["kind"] != "Service" or not role.startswith("roost-"):
            continue
        there = ports_of(role.removeprefix("roost-"))
        for port in one["spec"]["ports"]:
            if port["targetPort"] not in there:
                yield f"{title(one)}: {role} has no port {port['targetPort']}"
        notes = one["metadata"].get("annotations", {})
        asked = notes.get("service.beta.kubernetes.io/aws-load-balancer-healthcheck-port")
        if asked is not None and int(asked) not in there.values():
            yield f"{title(one)}: the load balancer asks port {asked}"
        path = notes.get("service.beta.kubernetes.io/aws-load-balancer-healthcheck-path")
        if path is not None and path not in PAGES:
            yield f"{title(one)}: the load balancer asks {path}"


def metrics_named(objects: list[Object]) -> Iterator[tuple[str, str]]:
    """(title, metric) of every query."""
    for one in objects:
        queries = {
            "ScaledObject": lambda one: [row["metadata"]["query"] for row in at(one, "spec.triggers")],
            "PrometheusRule": lambda one: [
                rule["expr"] for group in at(one, "spec.groups") for rule in group["rules"]
            ],
        }.get(one["kind"], lambda one: [])(one)
        for query in queries:
            yield from ((title(one), metric) for metric in _NAME.findall(re.sub(r"\{[^}]*\}", " ", query)))


def metric_faults(objects: list[Object]) -> Iterator[str]:
    yield from (
        f"{name}: there is no metric {metric}"
        for name, metric in metrics_named(objects)
        if metric not in METRICS
    )


def hardening_faults(objects: list[Object]) -> Iterator[str]:
    """What every pod of ours must say."""
    for name, spec, container in containers(objects):
        wanted = {
            "runs as nobody in particular": at(spec, "securityContext.runAsNonRoot") is True,
            "has a read-only root": at(container, "securityContext.readOnlyRootFilesystem") is True,
            "gains no privileges": at(container, "securityContext.allowPrivilegeEscalation") is False,
            "drops capabilities": at(container, "securityContext.capabilities.drop") == ["ALL"],
            "asks for memory": bool(at(container, "resources.requests.memory")),
            "has a limit of memory": bool(at(container, "resources.limits.memory")),
            "is spread": bool(spec.get("topologySpreadConstraints")) or name.startswith("Fleet"),
        }
        yield from (f"{name}: not so: it {what}" for what, is_so in wanted.items() if not is_so)


def all_faults(objects: list[Object]) -> list[str]:
    checks = (
        schema_faults,
        settings_faults,
        unread_secret_faults,
        command_faults,
        port_faults,
        metric_faults,
        mount_faults,
        pod_security_faults,
    )
    return [fault for check in (*checks, hardening_faults) for fault in check(objects)]
