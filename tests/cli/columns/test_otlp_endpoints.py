"""The URLs to which `mcpspy otlp` sends, with a receiver that says what it was asked for."""

import ssl
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import trustme

from mcpspy.errors import CollectorError
from mcpspy.telemetry.endpoint import endpoint_of
from tests.cli.terminal import run
from tests.conftest import ROOT
from tests.telemetry.receiver import Answer, receiving

TIME = str(ROOT / "captures/time.mcpspy")
COLLECTOR = "OTEL_EXPORTER_OTLP_ENDPOINT"
TRACES = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
METRICS = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"


def sent(*options: str, **variables: str) -> CompletedProcess[str]:
    return run("otlp", TIME, *options, stdin=None, **variables)


@pytest.mark.parametrize(
    ("end", "traces", "metrics"),
    [
        ("", "/v1/traces", "/v1/metrics"),
        ("/", "/v1/traces", "/v1/metrics"),
        ("/x//", "/x/v1/traces", "/x/v1/metrics"),
        ("/x?token=1", "/x/v1/traces?token=1", "/x/v1/metrics?token=1"),
        ("/?token=1", "/v1/traces?token=1", "/v1/metrics?token=1"),
        ("/x/?token=a/b#c", "/x/v1/traces?token=a/b", "/x/v1/metrics?token=a/b"),
        ("/v1/traces", "/v1/traces", "/v1/metrics"),
        ("/x/v1/traces/?token=1", "/x/v1/traces?token=1", "/x/v1/metrics?token=1"),
        ("/v1/metrics", "/v1/traces", "/v1/metrics"),
    ],
)
def test_the_path_of_spans_is_added_once_and_before_the_query(end: str, traces: str, metrics: str) -> None:
    with receiving() as receiver:
        done = sent("--endpoint", f"{receiver.url}{end}")
    assert (done.returncode, receiver.paths) == (0, [traces, metrics]), done.stderr


@pytest.mark.parametrize(
    ("variables", "paths"),
    [
        ({COLLECTOR: "/x?token=1"}, ["/x/v1/traces?token=1", "/x/v1/metrics?token=1"]),
        ({COLLECTOR: "/v1/traces"}, ["/v1/traces/v1/traces", "/v1/traces/v1/metrics"]),
        ({TRACES: "/as/it/is/traces", METRICS: "/metrics/?x"}, ["/as/it/is/traces", "/metrics/?x"]),
        ({TRACES: "/as/it/is/traces", COLLECTOR: "/x/"}, ["/as/it/is/traces", "/x/v1/metrics"]),
        ({TRACES: "", COLLECTOR: "/x"}, ["/x/v1/traces", "/x/v1/metrics"]),
    ],
)
def test_variables_name_urls_as_opentelemetry_specifies(variables: dict[str, str], paths: list[str]) -> None:
    with receiving() as receiver:
        urls = {name: f"{receiver.url}{end}" if end else "" for name, end in variables.items()}
        done = sent(**urls)
    assert (done.returncode, receiver.paths) == (0, paths), done.stderr


def test_the_option_goes_before_the_variables() -> None:
    with receiving() as receiver:
        sent("--endpoint", receiver.url, **{TRACES: "http://127.0.0.1:9/x", COLLECTOR: "http://127.0.0.1:9"})
    assert receiver.paths == ["/v1/traces", "/v1/metrics"]


@pytest.mark.parametrize("name", [COLLECTOR, TRACES])
def test_a_variable_without_a_url_is_named(name: str) -> None:
    done = sent(**{name: "localhost:4318"})
    assert (done.returncode, f"{name} takes a URL" in done.stderr, "localhost:4318." in done.stderr) == (2, True, True)


def test_one_collector_is_the_same_by_all_its_spellings() -> None:
    url = "http://127.0.0.1:4318"
    endpoints = [endpoint_of(f"{url}{end}", {}) for end in ("/", "", "/v1/traces")]
    endpoints.append(endpoint_of(None, {TRACES: f"{url}/v1/traces", METRICS: f"{url}/v1/metrics"}))
    assert {endpoint.name for endpoint in endpoints} == {url}


def test_a_login_and_a_query_are_sent_and_not_printed() -> None:
    with receiving() as receiver:
        receiver.answers = [Answer(400)]
        url = receiver.url.replace("//", "//alice:hunter2@") + "/x?token=hush"
        failed, done = (sent("--endpoint", url) for _ in range(2))
    assert (failed.returncode, done.returncode) == (4, 0)
    assert receiver.headers[-1]["Authorization"] == "Basic YWxpY2U6aHVudGVyMg=="
    assert [word for word in ("alice", "hunter2", "hush") if word in failed.stderr + done.stderr] == []


def test_header_fields_of_the_variable_are_sent() -> None:
    with receiving() as receiver:
        sent("--endpoint", receiver.url, OTEL_EXPORTER_OTLP_HEADERS="x-key=a%20b,Authorization=Bearer 1")
    assert {(fields["x-key"], fields["authorization"]) for fields in receiver.headers} == {("a b", "Bearer 1")}


@pytest.mark.parametrize(
    ("variables", "name"),
    [
        ({}, "mcpspy"),
        ({"OTEL_SERVICE_NAME": "desk"}, "desk"),
        ({"OTEL_RESOURCE_ATTRIBUTES": "service.name=desk,team=blue"}, "desk"),
    ],
)
def test_the_service_is_named_as_its_variables_say(variables: dict[str, str], name: str) -> None:
    with receiving() as receiver:
        sent("--endpoint", receiver.url, **variables)
    assert {resource["service.name"] for resource in receiver.resources} == {name}


def test_a_collector_may_have_an_address_of_version_6() -> None:
    name, traces, metrics = endpoint_of("http://[::1]:4318/", {})
    assert (name, traces, metrics) == ("http://[::1]:4318", "http://[::1]:4318/v1/traces", "http://[::1]:4318/v1/metrics")


def test_a_collector_with_tls_is_checked_by_the_certificate_of_the_variable(tmp_path: Path) -> None:
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    authority.issue_cert("localhost").configure_cert(context)
    with receiving(tls=context) as receiver:
        refused = sent("--endpoint", receiver.url, OTEL_EXPORTER_OTLP_TIMEOUT="1")
        done = sent("--endpoint", receiver.url, OTEL_EXPORTER_OTLP_CERTIFICATE=str(tmp_path / "ca.pem"))
    assert (refused.returncode, done.returncode, receiver.paths) == (4, 0, ["/v1/traces", "/v1/metrics"])
    assert "cannot be sent anything: certificate verify failed: " in refused.stderr
    assert "; OTEL_EXPORTER_OTLP_CERTIFICATE names certificates to trust." in refused.stderr


def test_a_file_of_certificates_that_is_not_there_is_named() -> None:
    done = sent("--endpoint", "https://127.0.0.1:9", OTEL_EXPORTER_OTLP_CERTIFICATE="/no/such/file")
    assert (done.returncode, "cannot be sent anything: " in done.stderr, "/no/such/file" in done.stderr) == (4, True, True)


def test_settings_that_the_sdk_does_not_understand_are_reported_once_and_without_their_values() -> None:
    with receiving() as receiver:
        done = sent("--endpoint", receiver.url, OTEL_EXPORTER_OTLP_HEADERS="hush 1", OTEL_EXPORTER_OTLP_TIMEOUT="soon")
    assert done.stderr.count("mcpspy: OpenTelemetry reports: Invalid timeout value …, using default") == 1
    assert (done.stderr.count("Header format invalid!"), "hush" in done.stderr) == (1, False)


def test_the_port_of_grpc_is_explained() -> None:
    words = "does not answer over HTTP; port 4317 is usually that of gRPC, and 4318 that of HTTP."
    assert words in str(CollectorError("http://localhost:4317"))
