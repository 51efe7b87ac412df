"""The Kubernetes manifests: what they ask for, and that the daemon understands what they say."""

import shutil
from pathlib import Path

import pytest
import yaml

from support.commands import run, wayout

FOLDER = Path(__file__).parents[2] / "deploy" / "kubernetes"


def read(name):
    return yaml.safe_load((FOLDER / name).read_text())


@pytest.fixture(scope="module")
def pod():
    return read("daemonset.yaml")["spec"]["template"]["spec"]


@pytest.fixture(scope="module")
def container(pod):
    (only,) = pod["containers"]
    return only


def test_the_kustomization_names_every_file_and_no_other():
    kustomization = read("kustomization.yaml")
    files = {each.name for each in FOLDER.iterdir()} - {"kustomization.yaml"}

    (generated,) = kustomization["configMapGenerator"]
    assert {*kustomization["resources"], *generated["files"]} == files
    assert kustomization["generatorOptions"]["disableNameSuffixHash"] is True


def test_the_file_of_the_config_map_is_valid_and_applied_by_itself():
    done = wayout("config", "check", str(FOLDER / "config.yaml"))

    assert done.returncode == 0, done.stderr
    assert read("config.yaml")["config"]["auto_reload"] == "on"


def test_seeds_are_the_headless_service_and_it_has_nodes_that_are_not_ready():
    service = read("service.yaml")
    (seed,) = read("config.yaml")["gossip"]["seeds"]

    assert seed == f"{service['metadata']['name']}.{read('kustomization.yaml')['namespace']}.svc"
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True
    labels = read("daemonset.yaml")["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()


def test_the_ports_are_those_that_gossip_uses(container):
    from config.schema.settings import VERSION, Settings

    settings = Settings(version=VERSION)
    for ports in (container["ports"], read("service.yaml")["spec"]["ports"]):
        numbers = {each.get("containerPort", each.get("port")) for each in ports}
        assert numbers == {settings.gossip.bind_port}
        assert {each["protocol"] for each in ports} == {"UDP", "TCP"}
    for name in ("startupProbe", "readinessProbe", "livenessProbe"):
        probe = container[name]["httpGet"]
        assert (probe["host"], probe["port"]) == (
            str(settings.api.http_listen.ip),
            settings.api.http_listen.port,
        )


def test_probes_ask_paths_that_are_served(container):
    from agent.http import HttpServer
    from agent.metrics import Metrics
    from support.desk import FakeDesk

    served = HttpServer(FakeDesk(), Metrics())._paths
    for name in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container[name]["httpGet"]["path"] in served


def test_the_container_has_two_capabilities_and_nothing_else(container):
    context = container["securityContext"]

    assert context["capabilities"] == {"drop": ["ALL"], "add": ["NET_ADMIN", "NET_RAW"]}
    assert context["readOnlyRootFilesystem"] is True
    assert context["allowPrivilegeEscalation"] is False
    assert context["privileged"] is False
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}


def test_the_account_has_no_token(pod):
    assert read("serviceaccount.yaml")["automountServiceAccountToken"] is False
    assert pod["automountServiceAccountToken"] is False
    assert pod["serviceAccountName"] == read("serviceaccount.yaml")["metadata"]["name"]
    kinds = [read(name)["kind"] for name in read("kustomization.yaml")["resources"]]
    assert not [kind for kind in kinds if "Role" in kind]


def test_the_pod_lives_on_the_node_and_its_environment_is_ours(pod, container):
    assert pod["hostNetwork"] is True
    assert pod["dnsPolicy"] == "ClusterFirstWithHostNet"
    assert pod["enableServiceLinks"] is False
    (name,) = container["env"]
    assert name["name"] == "WAYOUT__NODE__NAME"
    assert name["valueFrom"]["fieldRef"]["fieldPath"] == "spec.nodeName"


def test_the_environment_names_the_node():
    from config.load import load

    environ = {"WAYOUT__NODE__NAME": "worker-7.example"}
    loaded = load(FOLDER / "config.yaml", environ=environ)

    assert loaded.settings.node.name == "worker-7.example"


def test_the_configuration_is_mounted_as_a_whole_folder(pod, container):
    mounts = {each["mountPath"]: each for each in container["volumeMounts"]}
    volumes = {each["name"]: each for each in pod["volumes"]}

    assert "subPath" not in str(mounts)
    config = volumes[mounts["/etc/wayout"]["name"]]
    (generated,) = read("kustomization.yaml")["configMapGenerator"]
    assert config["configMap"]["name"] == generated["name"]
    assert {"/run/wayout", "/var/lib/wayout"} < set(mounts)
    assert set(volumes) == {each["name"] for each in mounts.values()}


def test_a_pod_that_stops_is_taken_for_one_that_is_replaced(pod, container):
    program, *arguments = container["lifecycle"]["preStop"]["exec"]["command"]

    assert (program, arguments[0]) == ("wayout", "restart-prepare")
    assert wayout(*arguments, "--help").returncode == 0
    # Handing over takes up to 10 s, if it comes to that.
    assert pod["terminationGracePeriodSeconds"] > 10


def test_the_command_line_is_one_that_wayout_understands(container):
    assert wayout(*container["args"], "--help").returncode == 0


@pytest.mark.skipif(not shutil.which("kubectl"), reason="needs kubectl")
def test_kustomize_renders_everything_into_one_namespace():
    done = run("kubectl", "kustomize", str(FOLDER))
    assert done.returncode == 0, done.stderr

    objects = {each["kind"]: each for each in yaml.safe_load_all(done.stdout)}
    assert set(objects) == {"Namespace", "ServiceAccount", "ConfigMap", "Service", "DaemonSet"}
    for kind, each in objects.items():
        expected = None if kind == "Namespace" else "wayout"
        assert each["metadata"].get("namespace") == expected
    assert objects["ConfigMap"]["data"]["config.yaml"] == (FOLDER / "config.yaml").read_text()
    (only,) = objects["DaemonSet"]["spec"]["template"]["spec"]["containers"]
    assert only["image"].startswith("registry.example/wayout:")
