"""Every overlay builds, is valid, and names only what Roost has. Each check is shown red once."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from roost.servers.entity.settings import EntitySettings
from tests.deploy import manifests
from tests.deploy.kustomize import build
from tests.deploy.manifests import KUBERNETES, OVERLAYS, Object, all_faults, at, named, objects_of, title
from tests.deploy.pod_security import LABEL, all_pods, pod_security_faults, refused

DEPLOY = KUBERNETES.parent


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_an_overlay_builds_and_nothing_is_wrong_with_it(overlay: str) -> None:
    assert all_faults(objects_of(overlay)) == []


needs_kubectl = pytest.mark.skipif(
    not shutil.which("kubectl"),
    reason="no kubectl here to compare our reader with: kubernetes.io, 1.30 or later",
)


@needs_kubectl
@pytest.mark.parametrize("folder", [*(f"overlays/{name}" for name in OVERLAYS), "telemetry"])
def test_our_own_reader_makes_of_the_files_what_kubectl_makes(folder: str) -> None:
    assert differences(KUBERNETES / folder) == []


@needs_kubectl
def test_our_own_reader_makes_of_every_component_what_kubectl_makes(everything: Path) -> None:
    assert differences(everything) == []


def differences(folder: Path) -> list[str]:
    """Titles of objects that the two make differently, or one of them alone."""

    def known(objects: list[Object]) -> dict[str, Any]:
        """Without the hash in names of generated ones, which our reader leaves out."""
        text = re.sub(
            r"\b(roost|roost-gameserver|roost-settings)-(?=[a-z0-9]*\d)[a-z0-9]{10}\b",
            r"\1",
            yaml.safe_dump(objects),
        )
        return {title(one): _plain(one) for one in yaml.safe_load(text)}

    ours, theirs = known(build(folder)), known(manifests.rendered(folder))
    return sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))


def _plain(one: Object) -> Object:
    if one["kind"] in (
        "ConfigMap",
        "Secret",
    ):  # where labels come from differs, and what is generated is checked below
        return {"data": {key: "".join(value.split()) for key, value in one["data"].items()}}
    return one


Break = Callable[[list[Object]], None]


def container(objects: list[Object], role: str, kind: str = "Deployment") -> Any:
    return at(named(objects, kind, f"roost-{role}"), "spec.template.spec.containers.0")


def breaks() -> dict[str, tuple[str, Break]]:
    """What is broken in a copy → what the checks say of it."""

    def put(change: Callable[[list[Object]], Any]) -> Break:
        def apply(objects: list[Object]) -> None:
            change(objects)

        return apply

    def env(objects: list[Object], name: str) -> Any:
        return next(one for one in container(objects, "gateway")["env"] if one["name"] == name)

    return {
        "a wrong port": (
            "ports",
            put(lambda all_: container(all_, "gateway")["ports"][0].update(containerPort=8401)),
        ),
        "a probe of a page that is not served": (
            "readinessProbe asks",
            put(lambda all_: container(all_, "gate")["readinessProbe"]["httpGet"].update(path="/ready")),
        ),
        "a service to a port that is not there": (
            "has no port",
            put(
                lambda all_: named(all_, "Service", "roost-gateway")["spec"]["ports"][0].update(
                    targetPort="web"
                )
            ),
        ),
        "a health check of the load balancer on a wrong port": (
            "the load balancer asks port 9999",
            put(
                lambda all_: named(all_, "Service", "roost-gate")["metadata"]["annotations"].update(
                    {"service.beta.kubernetes.io/aws-load-balancer-healthcheck-port": "9999"}
                )
            ),
        ),
        "a missing key": (
            "has no key wire-secret",
            put(
                lambda all_: named(all_, "ExternalSecret", "roost")["spec"].update(
                    data=[
                        row
                        for row in named(all_, "ExternalSecret", "roost")["spec"]["data"]
                        if row["secretKey"] != "wire-secret"
                    ]
                )
            ),
        ),
        "a key that nothing reads": (
            "no setting reads password",
            put(
                lambda all_: named(all_, "ExternalSecret", "roost")["spec"]["data"].append(
                    {"secretKey": "password", "remoteRef": {"key": "roost", "property": "password"}}
                )
            ),
        ),
        "a variable that is no setting": (
            "ROOST_GATEWAY__PROT is no setting",
            put(lambda all_: env(all_, "ROOST_GATEWAY__HOST").update(name="ROOST_GATEWAY__PROT")),
        ),
        "a value that the settings refuse": (
            "queue.tick_ms",
            put(
                lambda all_: next(
                    one["data"] for one in all_ if one["metadata"]["name"].startswith("roost-settings")
                ).update(ROOST_QUEUE__TICK_MS="fast")
            ),
        ),
        "an unknown metric": (
            "there is no metric gameserver_people",
            put(
                lambda all_: at(
                    named(all_, "ScaledObject", "roost-gameserver"), "spec.triggers.0.metadata"
                ).update(query="sum(gameserver_people)")
            ),
        ),
        "an unknown command": (
            "no such command",
            put(lambda all_: container(all_, "manager").update(args=["queue-manager"])),
        ),
        "an unknown flag of the stop hook": (
            "stop hook",
            put(
                lambda all_: at(
                    container(all_, "entity", "StatefulSet"), "lifecycle.preStop.exec.command"
                ).append("--patience")
            ),
        ),
        "a variable in the stop hook, which nobody would replace": (
            "nothing to be replaced",
            put(
                lambda all_: at(
                    container(all_, "entity", "StatefulSet"), "lifecycle.preStop.exec.command"
                ).append("$(POD_NAME)")
            ),
        ),
        "an argument that is set nowhere": (
            "$(NODE) is set nowhere",
            put(lambda all_: container(all_, "gate")["args"].append("$(NODE)")),
        ),
        "a field that Kubernetes does not know": (
            "replica",
            put(lambda all_: named(all_, "StatefulSet", "roost-entity")["spec"].update(replica=3)),
        ),
        "a field of a custom resource that is missing": (
            "lacks spec.scaleTargetRef.name",
            put(lambda all_: named(all_, "ScaledObject", "roost-gameserver")["spec"].pop("scaleTargetRef")),
        ),
        "a field of a custom resource that does not exist": (
            "spec.maxReplicas is unknown",
            put(lambda all_: named(all_, "ScaledObject", "roost-gameserver")["spec"].update(maxReplicas=50)),
        ),
        "a custom resource of another version": (
            "is of external-secrets.io/v1beta1",
            put(
                lambda all_: named(all_, "ExternalSecret", "roost").update(
                    apiVersion="external-secrets.io/v1beta1"
                )
            ),
        ),
        "a pod that gets the whole Secret": (
            "roost-gate: it gets the whole Secret",
            put(
                lambda all_: at(
                    named(all_, "Deployment", "roost-gate"), "spec.template.spec.volumes.1.secret"
                ).pop("items")
            ),
        ),
        "a key that a pod does not read": (
            "roost-manager: it gets ticket-keys",
            put(
                lambda all_: at(
                    named(all_, "Deployment", "roost-manager"), "spec.template.spec.volumes.1.secret.items"
                ).append({"key": "ticket-keys", "path": "ticket-keys"})
            ),
        ),
        "the store's user of another role": (
            "store is the key store-gateway, not store-gate",
            put(
                lambda all_: at(
                    named(all_, "Deployment", "roost-gate"), "spec.template.spec.volumes.1.secret.items.0"
                ).update(key="store-gateway")
            ),
        ),
        "a pod that the namespace refuses": (
            "restricted refuses hostPort 8400",
            put(lambda all_: container(all_, "gateway")["ports"][0].update(hostPort=8400)),
        ),
        "a root file system that can be written": (
            "read-only root",
            put(lambda all_: container(all_, "gate")["securityContext"].update(readOnlyRootFilesystem=False)),
        ),
    }


@pytest.mark.parametrize("broken", breaks())
def test_the_checks_find_it(broken: str) -> None:
    says, apply = breaks()[broken]
    objects = objects_of("prod")
    apply(objects)
    found = all_faults(objects)
    assert any(says.lower() in fault.lower() for fault in found), found


def test_the_grace_period_of_an_entity_server_follows_from_its_users_and_the_rate() -> None:
    """grace = users / rate × 2 + 40 + stop + 10, and 100 s for those who cannot move at once."""
    for overlay in OVERLAYS:
        objects = objects_of(overlay)
        spec = at(named(objects, "StatefulSet", "roost-entity"), "spec.template.spec")
        env = manifests.environment_of(objects, spec["containers"][0])
        users, rate = int(env["ROOST_ENTITY__CAPACITY"]), int(env.get("ROOST_BINDING__DRAIN_RATE", "100"))
        stop_s = EntitySettings().stop_ms // 1000
        grace_s = spec["terminationGracePeriodSeconds"]
        assert grace_s >= users / rate * 2 + 40 + stop_s + 10 + 100
        hook = at(spec, "containers.0.lifecycle.preStop.exec.command")
        assert int(hook[-1]) == grace_s - stop_s - 10


def test_whoever_is_let_in_at_the_gates_finds_a_home() -> None:
    """Also while one entity server is emptied."""
    for overlay, spare in (("prod", 1), ("dev", 0)):
        objects = objects_of(overlay)
        gates, homes = (
            at(named(objects, kind, name), "spec.replicas")
            for kind, name in (("Deployment", "roost-gate"), ("StatefulSet", "roost-entity"))
        )
        capacity = {
            role: int(
                manifests.environment_of(objects, container(objects, role, kind))[
                    f"ROOST_{role.upper()}__CAPACITY"
                ]
            )
            for role, kind in (("gate", "Deployment"), ("entity", "StatefulSet"))
        }
        assert gates * capacity["gate"] <= (homes - spare) * capacity["entity"], overlay


def test_gateways_scale_by_cpu_and_by_requests_of_a_metric_that_exists() -> None:
    metrics = named(objects_of("prod"), "HorizontalPodAutoscaler", "roost-gateway")["spec"]["metrics"]
    assert at(metrics, "0.resource.target.averageUtilization") == 65
    values = yaml.safe_load(
        (KUBERNETES / "components" / "requests-per-second" / "prometheus-adapter-values.yaml").read_text()
    )
    (rule,) = values["rules"]["custom"]
    assert at(metrics, "1.pods.metric.name") == rule["name"]["as"]
    assert set(re.findall(r"roost_\w+", rule["seriesQuery"] + rule["metricsQuery"])) <= manifests.METRICS


def test_the_alerts_are_those_of_prometheus() -> None:
    rules = yaml.safe_load((DEPLOY / "prometheus" / "rules.yml").read_text(encoding="utf-8"))
    assert named(objects_of("prod"), "PrometheusRule", "roost")["spec"]["groups"] == rules["groups"]


def test_every_board_is_loaded() -> None:
    boards = {path.name for path in (DEPLOY / "grafana" / "dashboards").glob("*.json")}
    loaded = {
        key
        for one in objects_of("prod")
        if one["kind"] == "ConfigMap" and one["metadata"].get("labels", {}).get("grafana_dashboard") == "1"
        for key in one["data"]
    }
    assert loaded == boards


def test_the_secrets_of_the_monitors_exist() -> None:
    objects = objects_of("prod")
    for one in objects:
        for endpoint in at(one, "spec.endpoints") or () if one["kind"] == "ServiceMonitor" else ():
            wanted = endpoint["authorization"]["credentials"]
            assert wanted["key"] in manifests.secret_keys(objects, wanted["name"]), title(one)


@pytest.fixture
def everything(tmp_path: Path) -> Path:
    """Production as its own file says it can be: Agones in place of KEDA, alerts, traces to a Collector."""
    prod = copied(tmp_path)
    text = (prod / "kustomization.yaml").read_text()
    parts = "".join(f"  - ../../components/{name}\n" for name in ("agones", "alerts", "otel"))
    (prod / "kustomization.yaml").write_text(text.replace("  - ../../components/keda\n", parts))
    return prod


@pytest.fixture
def with_everything(everything: Path) -> list[Object]:
    return manifests.rendered(everything)


def copied(tmp_path: Path) -> Path:
    """A copy of everything; the folder of its overlay for production."""
    shutil.copytree(DEPLOY, tmp_path / "deploy")
    return tmp_path / "deploy" / "kubernetes" / "overlays" / "prod"


@pytest.fixture(scope="module")
def telemetry() -> list[Object]:
    return manifests.rendered(KUBERNETES / "telemetry")


def test_components_that_production_leaves_out_fit_on_it(with_everything: list[Object]) -> None:
    assert all_faults(with_everything) == []
    titles = {title(one) for one in with_everything}
    assert {
        "Fleet/roost-gameserver",
        "FleetAutoscaler/roost-gameserver",
        "NetworkPolicy/roost-alerts",
        "NetworkPolicy/roost-traces",
    } <= titles
    assert not {"Deployment/roost-gameserver", "ScaledObject/roost-gameserver"} & titles
    fleet = named(with_everything, "Fleet", "roost-gameserver")
    assert at(fleet, "spec.template.spec.template.spec.containers.0.image") == "example/roost:0.1.0"


def test_only_the_collector_and_agones_ask_for_more_than_restricted(
    with_everything: list[Object], telemetry: list[Object]
) -> None:
    """Also where the namespace would let others in."""
    asking = {
        name: set(refused(spec, "restricted"))
        for objects in (with_everything, telemetry, objects_of("dev"))
        for name, _, spec in all_pods(objects)
    }
    assert {name: asked for name, asked in asking.items() if asked} == {
        "Fleet/roost-gameserver": {"hostPort 7000"},
        "DaemonSet/otel-collector": {
            "hostPath",
            "volume hostPath",
            "capability DAC_READ_SEARCH",
            "collector with capability DAC_READ_SEARCH",
            "collector that may run as root",
        },
    }


def test_the_namespaces_let_their_pods_in_and_would_not_with_another_label(
    with_everything: list[Object], telemetry: list[Object]
) -> None:
    for objects, namespace, refuses in (
        (with_everything, "roost", "Fleet/roost-gameserver: restricted refuses hostPort 7000"),
        (telemetry, "roost-telemetry", "DaemonSet/otel-collector: restricted refuses hostPath"),
    ):
        assert list(pod_security_faults(objects)) == []
        named(objects, "Namespace", namespace)["metadata"]["labels"][LABEL] = "restricted"
        assert refuses in list(pod_security_faults(objects))


def test_every_host_of_production_stands_in_one_file(tmp_path: Path) -> None:
    """Whoever changes it there has changed it everywhere."""
    prod = copied(tmp_path)
    addresses = prod / "addresses.yaml"
    addresses.write_text(addresses.read_text().replace("example.com", "play.test"))
    text = yaml.safe_dump(manifests.rendered(prod))
    assert "example.com" not in text
    for host in ("roost", "gate", "chat"):
        assert f"{host}.play.test" in text
    objects = manifests.rendered(prod)
    told = manifests.environment_of(objects, container(objects, "gate"))
    assert told["ROOST_GATE__PUBLIC_URL"] == "wss://gate.play.test"
    assert at(named(objects, "Ingress", "roost"), "spec.rules.0.host") == "roost.play.test"


def test_the_collector_sends_to_ports_where_loki_and_tempo_listen(telemetry: list[Object]) -> None:
    assert list(manifests.schema_faults(telemetry)) == []
    sent = yaml.safe_load(named(telemetry, "ConfigMap", "otel-collector")["data"]["collector.yaml"])
    assert sent["exporters"]["otlp/tempo"]["endpoint"] == "tempo:4317"
    assert sent["exporters"]["otlphttp/loki"]["endpoint"] == "http://loki:3100/otlp"
    for name, port in (("tempo", 4317), ("loki", 3100)):
        assert port in [row["port"] for row in named(telemetry, "Service", name)["spec"]["ports"]]
    for pipeline in sent["service"]["pipelines"].values():
        for part in ("receivers", "processors", "exporters"):
            assert set(pipeline[part]) <= sent[part].keys()


def test_roles_send_traces_where_the_collector_listens(
    with_everything: list[Object], telemetry: list[Object]
) -> None:
    settings = manifests.environment_of(with_everything, container(with_everything, "gateway"))
    collector = named(telemetry, "Service", "otel-collector")
    host = f"{collector['metadata']['name']}.{collector['metadata']['namespace']}"
    assert settings["ROOST_TRACING__ENDPOINT"] == f"http://{host}:4318"
    assert 4318 in [row["port"] for row in collector["spec"]["ports"]]
    (rule,) = named(with_everything, "NetworkPolicy", "roost-traces")["spec"]["egress"]
    assert at(rule, "to.0.namespaceSelector.matchLabels") == {
        "kubernetes.io/metadata.name": collector["metadata"]["namespace"]
    }
    assert at(rule, "to.0.podSelector.matchLabels") == collector["spec"]["selector"]
