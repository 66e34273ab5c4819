"""What schemas can't check: labels, names, ports and metrics that manifests refer to exist."""

import re
import sys
from pathlib import Path

import yaml

here = Path(__file__).parent
objects = [item for path in sorted((here / "kubernetes").glob("*.yaml")) for item in yaml.safe_load_all(path.read_text())]
deployments = {item["metadata"]["name"]: item["spec"] for item in objects if item["kind"] == "Deployment"}
problems = []


def selected(labels):
    """Deployments whose pods have these labels."""
    pods = {name: spec["template"]["metadata"]["labels"] for name, spec in deployments.items()}
    return [name for name, has in pods.items() if labels.items() <= has.items()]


def ports_of(deployment):
    containers = deployments[deployment]["template"]["spec"]["containers"]
    return {port["name"]: port["containerPort"] for container in containers for port in container["ports"]}


def expect(condition, message):
    if not condition:
        problems.append(message)


metrics = set()
all_ports = {port for deployment in deployments for port in ports_of(deployment).values()}
for item in objects:
    kind, name, spec = item["kind"], item["metadata"]["name"], item.get("spec", {})
    if kind == "NetworkPolicy":
        expect(selected(spec["podSelector"]["matchLabels"]), f"{name}: selects no pods")
        for rule in spec["ingress"]:
            expect({port["port"] for port in rule["ports"]} <= all_ports, f"{name}: opens a port that nobody listens at")
    if kind == "Deployment":
        expect(selected(spec["selector"]["matchLabels"]) == [name], f"{name}: its selector does not select its own pods only")
        annotations = spec["template"]["metadata"]["annotations"]
        expect(int(annotations["prometheus.io/port"]) in ports_of(name).values(), f"{name}: Prometheus is told another port")
        for container in spec["template"]["spec"]["containers"]:
            for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                action = container.get(probe, {})
                action = action.get("httpGet") or action.get("tcpSocket")
                expect(action is None or action["port"] in ports_of(name), f"{name}: {probe} asks a port that does not exist")
    elif kind == "Service":
        targets = selected(spec["selector"])
        expect(len(targets) == 1, f"service {name} selects {targets}")
        expect(all(port["targetPort"] in ports_of(target) for target in targets for port in spec["ports"]), f"service {name}: no such port")
    elif kind == "PodDisruptionBudget":
        expect(len(selected(spec["selector"]["matchLabels"])) == 1, f"disruption budget {name} selects not one deployment")
    elif kind == "HorizontalPodAutoscaler":
        target = spec["scaleTargetRef"]["name"]
        expect(target in deployments and "replicas" not in deployments[target], f"{target}: autoscaled, so without a number of replicas")
        metrics |= {metric["pods"]["metric"]["name"] for metric in spec["metrics"]}

adapter = next(item for item in objects if item["metadata"]["name"] == "locdiff-metrics-adapter")
rules = yaml.safe_load(adapter["data"]["config.yaml"])["rules"]
expect({rule["name"]["as"] for rule in rules} == metrics, "the metrics of the autoscaler are not those of the adapter's rules")
source = (here / "../crates/locdiff-server/src/metrics.rs").read_text()
for rule in rules:
    series = re.match(r"\w+", rule["seriesQuery"]).group()
    expect(f'"{series}"' in source, f"the server has no metric {series}")

# The same settings of a replica, wherever it runs.
compose = yaml.safe_load((here / "compose.yaml").read_text())["services"]["replica"]["environment"]
container = deployments["locdiff"]["template"]["spec"]["containers"][0]
expect({entry["name"]: entry["value"] for entry in container["env"]} == compose, "replicas of Compose and of Kubernetes have different settings")

for problem in problems:
    print(problem, file=sys.stderr)
sys.exit(1 if problems else 0)
