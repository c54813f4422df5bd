"""The chart as Kubernetes, Prometheus, a Gateway and the server itself will read it."""

import os
import subprocess
import tomllib

import chart
import chart_readme
import kubernetes_validate
import pytest
import shapes
import yaml

# The oldest version that the chart takes, and the newest of which the schemas are known.
KUBERNETES = ("1.29.0", "1.35.0")


def is_custom(found):
    return "." in found["apiVersion"].partition("/")[0].replace(".k8s.io", "") or "gateway" in found["apiVersion"]


@pytest.mark.parametrize("version", KUBERNETES)
def test_kubernetes_takes_every_object(objects, version):
    for found in objects:
        if not is_custom(found):
            kubernetes_validate.validate(found, version, strict=True)


def test_custom_resources_have_the_shape_of_their_types(objects, tmp_path):
    custom = [found for found in objects if is_custom(found)]
    if custom:
        assert shapes.refusals(custom, tmp_path) == ""


def test_a_custom_resource_of_another_shape_is_found_out(tmp_path):
    monitor = chart.only(chart.render(chart.CHART / "ci" / "postgres-values.yaml"), "ServiceMonitor")
    monitor["spec"]["endpoints"][0]["intervall"] = "30s"
    assert "intervall" in shapes.refusals([monitor], tmp_path)


def test_helm_has_nothing_to_say_against_it(values):
    told = chart.helm("lint", "--strict", chart.CHART, "--values", values)
    assert told.returncode == 0, told.stdout + told.stderr


def test_every_name_fits_and_is_there_once(objects):
    names = [(found["kind"], found["metadata"]["name"]) for found in objects]
    assert len(set(names)) == len(names)
    assert all(len(name) <= 63 for _, name in names)


def settings(objects):
    return chart.only(objects, "ConfigMap")["data"]["frazil.toml"]


def test_the_server_takes_the_settings(objects, tmp_path):
    """As it reads them in the pod, but for the key that is mounted there."""
    (tmp_path / "key").write_text("5e" * 32)
    file = tmp_path / "frazil.toml"
    file.write_text(settings(objects).replace("/etc/frazil/secrets/key", str(tmp_path / "key")))
    (container,) = chart.workload(objects)["spec"]["template"]["spec"]["containers"]
    variables = [variable["name"] for variable in container.get("env", ()) if variable["name"].startswith("FRAZIL_")]
    environment = {"PATH": os.environ["PATH"], **dict.fromkeys(variables, "postgres://u:p@localhost/frazil")}
    argv = [os.environ["FRAZIL_BINARY"], "check-config", "--config", file]
    told = subprocess.run(argv, capture_output=True, text=True, env=environment, timeout=30)
    assert told.returncode == 0, told.stderr


def test_settings_arrive_as_they_were_given():
    told = tomllib.loads(settings(chart.render(chart.CHART / "ci" / "postgres-values.yaml")))
    assert told["server"]["listen"] == "0.0.0.0:8181"
    assert told["server"]["metrics_listen"] == "0.0.0.0:9090"
    assert told["server"]["trusted_proxies"] == ["10.0.0.0/8", "192.168.0.0/16"]
    assert told["database"] == {"connections": 24, "migrate": False}
    assert told["commit"] == {"rebase": "append", "deadline_ms": 20000}
    assert told["limits"] == {"metadata_cache_bytes": 268435456}
    assert told["secrets"] == {"key_file": "/etc/frazil/secrets/key"}
    assert [issuer["issuer"] for issuer in told["auth"]["issuers"]] == [
        "https://idp.example.com/realms/data",
        "https://login.partner.example",
    ]


def test_the_cluster_is_an_issuer_whose_keys_are_asked_for_with_a_token():
    objects = chart.render(chart.CHART / "ci" / "gateway-values.yaml")
    told = tomllib.loads(settings(objects))
    (issuer,) = told["auth"]["issuers"]
    (container,) = chart.workload(objects)["spec"]["template"]["spec"]["containers"]
    mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert issuer["token_file"] == f"{mounted['cluster']}/token"
    assert issuer["ca_file"] == f"{mounted['cluster']}/ca.crt"
    assert told["auth"]["principals"] is True
    assert told["auth"]["token_lifetime_ms"] == 900000
    assert told["server"]["listen"] == "[::]:8181"


def test_pods_may_do_no_more_than_they_need(objects):
    for pod in chart.pods(objects):
        spec = pod["spec"]
        assert spec["automountServiceAccountToken"] is False
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in spec["containers"]:
            assert container["securityContext"]["readOnlyRootFilesystem"] is True
            assert container["securityContext"]["allowPrivilegeEscalation"] is False
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert container["resources"]["requests"] and container["resources"]["limits"]


def test_a_pod_is_given_the_time_that_it_takes_to_end(objects):
    server = tomllib.loads(settings(objects))["server"]
    grace_s = chart.workload(objects)["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    # After the requests come changes without a client, then background work: ten seconds at most for each.
    assert grace_s > (server["drain_notice_ms"] + server["drain_timeout_ms"]) / 1000 + 20


def test_what_selects_pods_finds_the_server_and_not_the_migration(objects):
    server = chart.workload(objects)["spec"]["template"]["metadata"]["labels"]
    others = [job["spec"]["template"]["metadata"]["labels"] for job in chart.of_kind(objects, "Job")]
    selectors = [found["spec"]["selector"] for found in chart.of_kind(objects, "Service")]
    selectors += [found["spec"]["selector"]["matchLabels"] for found in chart.of_kind(objects, "PodDisruptionBudget")]
    selectors += [found["spec"]["podSelector"]["matchLabels"] for found in chart.of_kind(objects, "NetworkPolicy")]
    assert selectors
    for selector in selectors:
        assert selector.items() <= server.items()
        assert not any(selector.items() <= other.items() for other in others)


def test_the_monitor_finds_the_port_of_the_metrics():
    objects = chart.render(chart.CHART / "ci" / "postgres-values.yaml")
    monitor = chart.only(objects, "ServiceMonitor")["spec"]
    found = [
        service
        for service in chart.of_kind(objects, "Service")
        if monitor["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    ]
    (service,) = found
    assert [port["name"] for port in service["spec"]["ports"]] == [monitor["endpoints"][0]["port"]]


def test_no_password_is_in_a_config_map_or_a_pod(objects, values):
    url = (yaml.safe_load(values.read_text()).get("database") or {}).get("url")
    if not url:
        return
    for found in objects:
        if found["kind"] != "Secret":
            assert url not in yaml.safe_dump(found)
    assert {found["stringData"]["url"] for found in chart.of_kind(objects, "Secret")} == {url}


def test_the_database_is_migrated_before_the_pods_and_never_by_them():
    for values in ("postgres", "gateway"):
        objects = chart.render(chart.CHART / "ci" / f"{values}-values.yaml")
        job = chart.only(objects, "Job")
        assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
        names = {secret["metadata"]["name"] for secret in before_all(objects)} | {"lakehouse-app"}
        (container,) = job["spec"]["template"]["spec"]["containers"]
        told = {variable["name"]: variable for variable in container["env"]}
        assert told["FRAZIL_DATABASE_URL"]["valueFrom"]["secretKeyRef"]["name"] in names
        assert tomllib.loads(settings(objects))["database"]["migrate"] is False


def before_all(objects):
    """The Secrets that are there before anything else."""
    secrets = chart.of_kind(objects, "Secret")
    return [secret for secret in secrets if "helm.sh/hook" in secret["metadata"].get("annotations", {})]


def test_one_node_keeps_its_volume():
    stateful = chart.only(chart.render(chart.CHART / "ci" / "single-node-values.yaml"), "StatefulSet")
    (claim,) = stateful["spec"]["volumeClaimTemplates"]
    (container,) = stateful["spec"]["template"]["spec"]["containers"]
    mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounted[claim["metadata"]["name"]] == "/data"
    assert claim["spec"]["resources"]["requests"]["storage"] == "20Gi"
    assert stateful["spec"]["replicas"] == 1


REFUSED = {
    "nobody would be asked": ["singleNode.enabled=true"],
    "insecure is set beside auth": ["insecure=true", "auth.principals=true", "singleNode.enabled=true"],
    "there is no database": ["auth.principals=true"],
    "choose one": ["auth.principals=true", "singleNode.enabled=true", "database.existingSecret.name=x"],
    "autoscaling.enabled needs PostgreSQL": ["insecure=true", "singleNode.enabled=true", "autoscaling.enabled=true"],
    "set database.existingSecret": ["insecure=true", "singleNode.enabled=true", "config.database.url=x"],
    "set server.address": ["insecure=true", "singleNode.enabled=true", "config.server.listen=x"],
    "name at least one host": ["insecure=true", "singleNode.enabled=true", "ingress.enabled=true"],
    "name the Gateway": ["insecure=true", "singleNode.enabled=true", "gateway.enabled=true"],
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_must_not_be_installed_is_refused_with_what_to_do(words):
    told = chart.template(*(word for pair in REFUSED[words] for word in ("--set", pair)))
    assert told.returncode != 0
    assert words in told.stderr


MISSPELT = ["replicas=2", "auth.principal=true", "auth.issuers[0].issuer=ftp://x", "image.digest=abc", "server.basePath=x"]
MISSPELT += ["config.comit.group_max=1", "metrics.port=0", "auth.issuers[0].algorithms[0]=none"]


@pytest.mark.parametrize("pair", MISSPELT)
def test_a_value_that_is_none_is_refused(pair):
    told = chart.template("--set", "insecure=true,singleNode.enabled=true", "--set", pair)
    assert told.returncode != 0
    assert "don't meet the specifications of the schema" in told.stderr


def keys(value, path=()):
    """All paths of a tree of values, without what is below an empty one."""
    for key, below in value.items() if isinstance(value, dict) else ():
        yield (*path, key)
        yield from keys(below, (*path, key))


def test_every_value_is_told_in_the_readme():
    assert (chart.CHART / "README.md").read_text() == chart_readme.text(), "run `just chart-readme`"


def test_every_value_has_a_line_that_tells_what_it_is():
    told = {tuple(row.key.split(".")) for row in chart_readme.rows()}
    default = yaml.safe_load((chart.CHART / "values.yaml").read_text())
    for path in keys(default):
        assert any(path[: len(row)] == row or row[: len(path)] == path for row in told), ".".join(path)


def test_alerts_are_those_of_the_repository():
    rule = chart.only(chart.render(chart.CHART / "ci" / "postgres-values.yaml"), "PrometheusRule")
    assert rule["spec"] == yaml.safe_load((chart.CHART / "files" / "alerts.yml").read_text())
    assert all(group["rules"] for group in rule["spec"]["groups"])


def test_the_notes_tell_how_to_log_in():
    # Notes are printed by an installation alone; --dry-run makes none.
    values = chart.CHART / "ci" / "gateway-values.yaml"
    told = chart.helm("install", "try", chart.CHART, "--dry-run=client", "--namespace", "catalog", "--values", values)
    assert told.returncode == 0, told.stderr
    notes = told.stdout.partition("NOTES:")[2]
    assert "exec deployment/catalog -- frazil principal create" in notes
    assert "https://catalog.catalog.svc:443/catalog" in notes
    assert "WARNING" not in notes
