from __future__ import annotations

from pathlib import Path

import pytest

from roost.core.errors import InvalidSettings
from roost.local import fresh_secrets
from roost.settings import (
    NAMES,
    Loaded,
    Settings,
    example,
    shown,
    validate,
    value_of,
    variable,
)

KEY = "k1:" + "A" * 22 + "=="


def load(flags: dict[str, object] | None = None, **environ: str) -> Loaded:
    return Loaded.load(flags, environ)


def faults_of(flags: dict[str, object] | None = None, **environ: str) -> list[str]:
    with pytest.raises(InvalidSettings) as caught:
        load(flags, **environ)
    return caught.value.faults


def test_the_defaults_are_valid_and_local() -> None:
    settings = load().settings
    assert (settings.profile, settings.store, settings.gateway.port) == ("dev", "embedded:", 8400)
    assert settings.data.is_absolute()


def test_a_flag_beats_the_environment_which_beats_the_file(tmp_path: Path) -> None:
    file = tmp_path / "roost.toml"
    file.write_text('log_level = "error"\nnamespace = "file"\n[gateway]\nport = 1\n')
    loaded = load(
        {"gateway.port": 3},
        ROOST_CONFIG=str(file),
        ROOST_GATEWAY__PORT="2",
        ROOST_NAMESPACE="env",
    )
    assert loaded.settings.gateway.port == 3
    assert loaded.settings.namespace == "env"
    assert loaded.settings.log_level == "error"
    assert loaded.origins["gateway.port"] == "flag --port"
    assert loaded.origins["namespace"] == "env ROOST_NAMESPACE"
    assert loaded.origins["log_level"] == f"file {file}"
    assert loaded.origins["store"] == "default"


def test_a_value_may_stand_in_a_file_of_its_own(tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text("a-secret-from-a-file\n")
    loaded = load(ROOST_API_TOKEN_FILE=str(secret))
    assert loaded.settings.api_token == "a-secret-from-a-file"
    assert loaded.origins["api_token"] == "env ROOST_API_TOKEN_FILE"


def test_the_plain_variable_beats_the_file_variable_in_any_order(tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text("a-secret-from-a-file")
    plain, filed = {"ROOST_API_TOKEN": "a-secret-given-directly"}, {"ROOST_API_TOKEN_FILE": str(secret)}
    for environ in (plain | filed, filed | plain):
        assert Loaded.load({}, environ).settings.api_token == "a-secret-given-directly"


def test_a_missing_value_file_is_a_fault() -> None:
    assert faults_of(ROOST_API_TOKEN_FILE="/nowhere/token") == [
        "ROOST_API_TOKEN_FILE: cannot read /nowhere/token: No such file or directory"
    ]


def test_a_file_that_holds_no_text_is_a_fault(tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_bytes(b"\xff\xfe\x00")
    assert faults_of(ROOST_API_TOKEN_FILE=str(secret)) == [
        f"ROOST_API_TOKEN_FILE: cannot read {secret}: it is no text"
    ]
    (fault,) = faults_of(ROOST_CONFIG=str(secret))
    assert fault.startswith(f"config: {secret} is not valid TOML")


def test_all_faults_come_at_once() -> None:
    faults = faults_of(
        {"gateway.port": 70000},
        ROOST_STORE="mysql://x",
        ROOST_NAMESPACE="a{b}",
        ROOST_QUEUE_KEYS="k1:???",
        ROOST_TICKET_KEYS=KEY,
        ROOST_API_TOKEN="short",
        ROOST_LINK__MAX_INFLIGHT="0",
        ROOST_LINK__MAX_WAITING="lots",
        ROOST_LOG_FORMAT="xml",
    )
    text = "\n".join(faults)
    for name in (
        "store",
        "namespace",
        "queue_keys",
        "api_token",
        "max_inflight",
        "max_waiting",
        "log_format",
        "port",
    ):
        assert name in text
    assert len(faults) == 8
    assert "ticket_keys" not in text


@pytest.mark.parametrize(
    "name",
    [
        "queue_keys",
        "ticket_keys",
        "api_token",
        "wire_secret",
        "database",
        "alerts.webhooks",
        "alerts.secret",
        "alerts.pagerduty_key",
    ],
)
def test_secrets_are_shown_masked(name: str) -> None:
    assert shown(name, "the-secret-value") == "***"
    assert shown(name, "") == ""


def test_a_store_password_is_masked_and_the_rest_is_shown() -> None:
    assert shown("store", "redis://me:pw@localhost/3") == "redis://me:***@localhost:6379/3"


def test_a_fault_never_repeats_a_secret() -> None:
    text = str(
        faults_of(
            ROOST_STORE="redis://u:hunter2@ho st", ROOST_QUEUE_KEYS="k:hunter2", ROOST_WIRE_SECRET="hunter2"
        )
    )
    assert "hunter2" not in text


def test_an_unknown_nested_name_is_a_fault_with_a_suggestion(tmp_path: Path) -> None:
    assert "did you mean ROOST_GATEWAY__PORT?" in faults_of(ROOST_GATEWAY__PROT="1")[0]
    file = tmp_path / "roost.toml"
    file.write_text("[gateway]\nprot = 1\n")
    assert "did you mean gateway.port?" in faults_of(ROOST_CONFIG=str(file))[0]


def test_names_that_kubernetes_makes_for_a_service_called_roost_are_left_alone() -> None:
    load(ROOST_PORT="tcp://10.0.0.1:8400", ROOST_SERVICE_HOST="10.0.0.1")


@pytest.mark.parametrize("content", ["store = ", "store = 5.5", "gateway = 1"])
def test_a_broken_file_is_a_fault_and_no_traceback(tmp_path: Path, content: str) -> None:
    file = tmp_path / "roost.toml"
    file.write_text(content)
    assert faults_of(ROOST_CONFIG=str(file))


def test_leaving_this_machine_needs_a_profile() -> None:
    assert "say which profile" in faults_of({"gateway.host": "0.0.0.0"})[0]
    assert "another machine" in faults_of(ROOST_STORE="redis://10.0.0.5")[0]
    load({"gateway.host": "0.0.0.0", "profile": "dev"}, ROOST_STORE="redis://10.0.0.5")
    load({"gateway.host": "0.0.0.0"}, ROOST_PROFILE="lan", ROOST_STORE="redis://10.0.0.5")


def test_every_setting_has_a_variable_and_a_line_in_the_example() -> None:
    text = example()
    for name in NAMES:
        assert variable(name).startswith("ROOST_")
        if name not in ("config", "data"):
            assert f"# {name.rpartition('.')[2]} = " in text


def test_validate_is_content_with_every_default() -> None:
    assert validate(Settings()) == []
    assert value_of(Settings(), "link.max_inflight") == 4096


def test_the_data_folder_follows_the_xdg_convention() -> None:
    assert load(XDG_STATE_HOME="/var/state").settings.data == Path("/var/state/roost")


def test_alerts_go_nowhere_by_default() -> None:
    assert load().settings.alerts.targets() == ()


def test_webhooks_are_read_from_the_environment() -> None:
    alerts = load(
        ROOST_ALERTS__WEBHOOKS="slack=https://hooks.slack.com/services/T/B/x, pagerduty,json=http://10.0.0.9:81/in",
        ROOST_ALERTS__PAGERDUTY_KEY="R0UT1NG",
        ROOST_ALERTS__PER_MINUTE="6",
    ).settings.alerts
    assert [(webhook.kind, webhook.host, webhook.routing_key) for webhook in alerts.targets()] == [
        ("slack", "hooks.slack.com", ""),
        ("pagerduty", "events.pagerduty.com", "R0UT1NG"),
        ("json", "10.0.0.9", ""),
    ]
    assert (alerts.per_minute, alerts.burst) == (6, 10)


def test_webhooks_may_stand_in_a_file_as_secrets_do(tmp_path: Path) -> None:
    file = tmp_path / "webhooks"
    file.write_text("slack=https://hooks.slack.com/services/T/B/x\n")
    assert len(load(ROOST_ALERTS__WEBHOOKS_FILE=str(file)).settings.alerts.targets()) == 1


@pytest.mark.parametrize(
    ("webhooks", "fault"),
    [
        (
            "teams=https://hunter2.example/x",
            "webhook 1 must be kind=url with a kind of slack, pagerduty, json",
        ),
        ("https://hunter2.example/x", "webhook 1 must be kind=url"),
        ("json=http://ok/,slack=ftp://hunter2/x", "webhook 2 (slack) needs a URL that begins with https://"),
        ("slack=", "webhook 1 (slack) needs a URL"),
        ("slack", "webhook 1 (slack) needs a URL"),
        ("json=https:///hunter2", "webhook 1 (json) needs a URL"),
        ("json=https://[hunter2/x", "webhook 1 (json) needs a URL"),
        ("json=https://host:hunter2/x", "webhook 1 (json) needs a URL"),
        ("json=https://host/hunter2 x", "webhook 1 (json) needs a URL"),
        ("pagerduty", "webhook 1 needs the integration key (set alerts.pagerduty_key)"),
    ],
)
def test_a_bad_webhook_is_a_fault_that_does_not_repeat_it(webhooks: str, fault: str) -> None:
    faults = faults_of(ROOST_ALERTS__WEBHOOKS=webhooks)
    assert len(faults) == 1
    assert faults[0].startswith(f"alerts.webhooks: {fault}")
    assert "hunter2" not in faults[0]


def test_a_short_alert_secret_is_a_fault() -> None:
    assert faults_of(ROOST_ALERTS__SECRET="hunter2") == [
        "alerts.secret needs at least 16 ASCII characters and no spaces"
    ]


def test_no_row_of_the_settings_shows_a_secret_of_the_alerts() -> None:
    loaded = load(
        ROOST_ALERTS__WEBHOOKS="slack=https://hooks.slack.com/services/hunter2,pagerduty",
        ROOST_ALERTS__SECRET="hunter2-hunter2-hunter2",
        ROOST_ALERTS__PAGERDUTY_KEY="hunter2",
    )
    assert "hunter2" not in str(list(loaded.rows()))
    assert "hunter2" not in repr(loaded.settings.alerts.targets())


def test_the_database_is_a_file_in_the_data_folder_unless_said() -> None:
    assert load(ROOST_DATA="/data").settings.database_url == "sqlite:////data/users.db"
    assert load(ROOST_DATABASE="mysql://h/d").settings.database_url == "mysql://h/d"


def test_a_database_url_that_does_not_fit_is_a_fault_without_its_password() -> None:
    with pytest.raises(InvalidSettings, match=r"database: .* needs the name of a database") as error:
        load(ROOST_DATABASE="postgresql://u:a-secret@host")
    assert "a-secret" not in str(error.value)


def test_fresh_secrets_are_taken_by_the_settings_and_are_others_each_time() -> None:
    first, second = fresh_secrets(), fresh_secrets()
    settings = Loaded.load(environ={variable(name): value for name, value in first.items()}).settings
    assert {name: value_of(settings, name) for name in first} == first
    assert all(first[name] != second[name] for name in first)
