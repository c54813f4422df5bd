"""The examples, as the operators of Flink and Spark, the chart of Trino and Compose will read them."""

import os
import zipfile

import chart
import jsonschema
import kubernetes_validate
import paths
import pytest
import shapes
import yaml

COMPOSE = paths.REPO / "deploy" / "compose" / "compose.yaml"


def example(name):
    return list(yaml.safe_load_all((chart.EXAMPLES / name).read_text()))


def test_kubernetes_takes_what_is_its_own():
    for found in [*example("flink.yaml"), *example("spark.yaml")]:
        if found["apiVersion"] == "v1":
            kubernetes_validate.validate(found, "1.33.0", strict=True)


# What the Spark operator's types have, as far as the example uses them: they are published nowhere that a build can take them from.
SPARK = {
    "spec": {"schedule", "concurrencyPolicy", "template"},
    "template": {
        *("type", "mode", "sparkVersion", "image", "mainApplicationFile", "restartPolicy", "sparkConf", "volumes"),
        *("driver", "executor"),
    },
    "restartPolicy": {"type", "onFailureRetries", "onFailureRetryInterval"},
    "driver": {"cores", "memory", "serviceAccount", "env", "volumeMounts"},
    "executor": {"cores", "memory", "serviceAccount", "instances"},
}


def test_the_spark_job_has_the_shape_that_its_operator_takes():
    (job,) = chart.of_kind(example("spark.yaml"), "ScheduledSparkApplication")
    template = job["spec"]["template"]
    assert job["spec"].keys() == SPARK["spec"] and template.keys() == SPARK["template"]
    for part in ("restartPolicy", "driver", "executor"):
        assert template[part].keys() == SPARK[part]
    assert all(isinstance(value, str) for value in template["sparkConf"].values())


def test_the_pod_of_the_spark_driver_is_one():
    template = chart.only(example("spark.yaml"), "ScheduledSparkApplication")["spec"]["template"]
    driver = {"name": "driver", "env": template["driver"]["env"], "volumeMounts": template["driver"]["volumeMounts"]}
    spec = {"containers": [driver], "volumes": template["volumes"]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "driver"}, "spec": spec}
    kubernetes_validate.validate(pod, "1.33.0", strict=True)


def flink_schema():
    """That of the operator's own definition of a FlinkDeployment."""
    with zipfile.ZipFile(os.environ["FLINK_OPERATOR_JAR"]) as jar:
        (name,) = [name for name in jar.namelist() if "flinkdeployments" in name and name.endswith("-v1.yml")]
        definition = yaml.safe_load(jar.read(name))
    version = next(version for version in definition["spec"]["versions"] if version["name"] == "v1beta1")
    return closed(version["schema"]["openAPIV3Schema"])


def closed(schema):
    """With no more fields than it names, as an API server that is told to be strict reads it."""
    if isinstance(schema, dict):
        schema = {key: closed(value) for key, value in schema.items()}
        open_ended = schema.get("x-kubernetes-preserve-unknown-fields") or "additionalProperties" in schema
        if isinstance(schema.get("properties"), dict) and not open_ended:
            schema["additionalProperties"] = False
    return schema


def test_the_flink_operator_takes_the_job():
    (job,) = chart.of_kind(example("flink.yaml"), "FlinkDeployment")
    # The newest definition that is published as a library knows no Flink 2.
    assert job["spec"]["flinkVersion"] == "v2_1"
    job["spec"]["flinkVersion"] = "v1_20"
    schema = flink_schema()
    jsonschema.validate({"spec": job["spec"]}, schema)
    job["spec"]["jobmanager"] = {}
    with pytest.raises(jsonschema.ValidationError, match="jobmanager"):
        jsonschema.validate({"spec": job["spec"]}, schema)


def test_engines_ask_the_service_that_the_chart_makes():
    objects = chart.render(chart.EXAMPLES / "frazil-values.yaml", release="frazil")
    service = next(found for found in chart.of_kind(objects, "Service") if found["metadata"]["name"] == "frazil")
    (port,) = service["spec"]["ports"]
    uri = f"http://frazil.catalog.svc:{port['port']}"
    for name in ("flink.yaml", "spark.yaml", "trino-values.yaml"):
        text = (chart.EXAMPLES / name).read_text()
        assert text.count(uri) == 2, name
        assert f"{uri}/v1/oauth/tokens" in text, name


def test_compose_takes_its_file():
    assert shapes.refusals_of(COMPOSE) == ""


def test_compose_opens_ports_to_this_machine_alone():
    for service in yaml.safe_load(COMPOSE.read_text())["services"].values():
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))


def test_compose_pins_what_it_does_not_build():
    for service in yaml.safe_load(COMPOSE.read_text())["services"].values():
        _, _, tag = service["image"].rpartition(":")
        assert tag not in ("", "latest")
