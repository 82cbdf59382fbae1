"""Several metrics pages become one that Prometheus can trust."""

from __future__ import annotations

from collections.abc import Mapping

from roost.gateway.workers.adding import Page, added, counted, read_page, rules, write_page
from roost.web.catalogue import Adds

PAGE = """\
# HELP roost_info Version, profile and role of this process
# TYPE roost_info gauge
roost_info{{role="gateway"}} 1.0
# HELP roost_http_requests_total HTTP requests
# TYPE roost_http_requests_total counter
roost_http_requests_total{{route="/a b"}} {requests}
# HELP roost_http_request_seconds Time to answer
# TYPE roost_http_request_seconds histogram
roost_http_request_seconds_bucket{{le="0.1"}} {requests}
roost_http_request_seconds_bucket{{le="+Inf"}} {requests}
roost_http_request_seconds_count {requests}
roost_http_request_seconds_sum 0.5
# HELP queue_waiting_size People who wait
# TYPE queue_waiting_size gauge
queue_waiting_size{{world="main"}} {waiting}
# HELP ticket_issued_count Tickets
# TYPE ticket_issued_count counter
ticket_issued_count{{world="main"}} {waiting}
# HELP roost_store_up Whether a node answers
# TYPE roost_store_up gauge
roost_store_up{{node="one"}} {up}
# HELP process_open_fds Files
# TYPE process_open_fds gauge
process_open_fds 7.0
"""

ADDS: Mapping[str, Adds] = {
    "roost_http_requests_total": "sum",
    "roost_http_request_seconds": "sum",
    "queue_waiting_size": "max",
    "ticket_issued_count": "max",
    "roost_store_up": "one",
}


def page(requests: int = 0, waiting: int = 0, up: int = 1) -> Page:
    return read_page(PAGE.format(requests=requests, waiting=waiting, up=up))


def samples(whole: Page) -> dict[str, float]:
    return {series: value for family in whole.values() for series, value in family.samples.items()}


def test_a_page_is_written_as_it_was_read() -> None:
    text = PAGE.format(requests="3.0", waiting="4.0", up="1.0")

    assert write_page(read_page(text)) == text


def test_what_workers_counted_themselves_is_added() -> None:
    whole = samples(added({1: page(3), 2: page(4)}, {}, ADDS))

    assert whole['roost_http_requests_total{route="/a b"}'] == 7
    assert whole['roost_http_request_seconds_bucket{le="+Inf"}'] == 7
    assert whole["roost_http_request_seconds_sum"] == 1


def test_a_number_of_the_store_is_shown_once_whether_gauge_or_counter() -> None:
    whole = samples(added({1: page(waiting=900), 2: page(waiting=901)}, {}, ADDS))

    assert whole['queue_waiting_size{world="main"}'] == 901
    assert whole['ticket_issued_count{world="main"}'] == 901


def test_the_state_of_each_worker_is_told_apart_by_a_label() -> None:
    whole = samples(added({1: page(up=1), 2: page(up=0)}, {}, ADDS))

    assert whole['roost_store_up{node="one",worker="1"}'] == 1
    assert whole['roost_store_up{node="one",worker="2"}'] == 0
    assert whole['process_open_fds{worker="2"}'] == 7


def test_what_a_process_is_stands_there_once_so_that_queries_can_join_it() -> None:
    whole = added({1: page(), 2: page()}, {}, ADDS)

    assert whole["roost_info"].samples == {'roost_info{role="gateway"}': 1}


def test_a_sum_does_not_fall_when_a_worker_ends_and_begins_again_at_nothing() -> None:
    before = samples(added({1: page(3), 2: page(4)}, {}, ADDS))
    former = counted((counted((), ADDS), page(4, waiting=900)), ADDS)

    after = samples(added({1: page(3), 2: page(0)}, former, ADDS))

    counted_names = [series for series in before if series.startswith("roost_http")]
    assert counted_names
    assert all(after[series] >= before[series] for series in counted_names)
    assert after['queue_waiting_size{world="main"}'] == 0, "what the store says is not remembered"
    assert after['roost_store_up{node="one",worker="2"}'] == 1


def test_the_rules_are_those_that_the_catalogue_has_for_queries() -> None:
    known = rules()

    assert known["roost_http_requests_total"] == "sum"
    assert known["ticket_issued_count"] == "max"
    assert known["roost_store_up"] == "one"
