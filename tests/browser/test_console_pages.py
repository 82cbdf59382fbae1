"""Every page of the console and what can be done on it, in a real browser on a real Roost."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from roost.testing import eventually
from tests.browser.chromium import BINARY
from tests.browser.console import PHONE, Console
from tests.browser.scene import Scene

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BINARY is None, reason="no Chromium here: `make deps-ci` installs it"),
    pytest.mark.asyncio(loop_scope="module"),
]

PAGES = ("overview", "servers", "ring", "users", "update", "queue", "orders", "audit")


async def instance_of(scene: Scene, server_id: str) -> dict[str, Any]:
    found = await asyncio.to_thread(scene.call, "GET", "/sd/v1/instances")
    return next(row for row in found["instances"] if row["serverId"] == server_id)


async def world_of(scene: Scene) -> dict[str, Any]:
    return dict(await asyncio.to_thread(scene.call, "GET", "/queue/v1/worlds/main"))


async def test_a_newcomer_finds_the_next_step_on_every_page(console: Console) -> None:
    for page, command in {
        "servers": "roost agent --type game",
        "ring": "roost agent --type game",
        "users": "roost up --with entity,gate",
        "update": "roost drill hotfix",
        "queue": "roost gameserver --capacity 200",
        "orders": "roost orders serve",
        "audit": "roost queue hold",
    }.items():
        await console.go(page)
        await console.shows(command)


async def test_overview_shows_the_way_of_a_user_and_what_happens(scene: Scene, console: Console) -> None:
    await console.go("overview")
    await asyncio.to_thread(scene.register, ["601", "602", "603"])
    await console.shows("Waiting", "Tickets", "Servers accepting", "3 / 3", "601 (battle) registered")
    await console.shows("Nothing needs you.")


async def test_servers_are_filtered_looked_at_and_changed(scene: Scene, console: Console) -> None:
    await console.go("servers")
    await console.shows("601", "602", "603", "battle:kr-1", "3 in all")
    await console.fill("input[type=search]", "tier=casual")
    await console.shows("1 of 3", "602")
    await console.fill("input[type=search]", "")
    await console.fill("select[aria-label=Group]", "jp-1")
    await console.shows("1 of 3")
    await console.fill("select[aria-label=Group]", "")
    await console.go("servers/601")
    await console.shows("History", "registered", "tier=ranked", "checkers find it unhealthy")
    await console.press("Verify now")
    await console.shows("It declares no health check.")

    await console.press("Drain")
    await console.shows("Drain 601?", "It gets no new users")
    await console.press("Drain")
    await console.shows("601 drains.", "Stop draining", "draining")
    assert (await instance_of(scene, "601"))["override"]["drain"] is True
    await console.press("Stop draining")
    await console.shows("601 takes users again.")
    await console.press("Out of service")
    await console.press("Out of service")
    await console.shows("601 is out of service.", "Put back")
    assert (await instance_of(scene, "601"))["accepting"] is False
    await console.press("Put back")
    await console.press("Weight")
    await console.fill("dialog input", "250")
    await console.press("Set")
    await console.shows("The weight of 601 is set.", "250 (set by an operator)")
    assert (await instance_of(scene, "601"))["override"]["weight"] == 250
    await console.press("Grid")
    await console.sees("document.querySelectorAll('.tile').length === 3")
    await console.press("Table")


async def test_a_question_that_is_not_confirmed_changes_nothing(scene: Scene, console: Console) -> None:
    await console.go("servers/602")
    await console.press("Out of service")
    await console.shows("Take 602 out of service?")
    await console.press("Cancel")
    await console.sees("!document.querySelector('dialog')")
    assert (await instance_of(scene, "602"))["override"] is None


async def test_names_from_the_store_are_shown_as_text_and_never_run(scene: Scene, console: Console) -> None:
    evil = "<img/src=x/onerror=window.hacked=1>"
    await asyncio.to_thread(scene.register, ["604"], version=evil, labels={"note": evil}, hostname=evil)
    await console.go("servers/604")
    await console.shows(evil)
    await console.go("overview")
    await console.shows("604 (battle) registered")
    assert await console.page.value("window.hacked === undefined && !document.querySelector('img[src=x]')")


async def test_servers_of_one_id_and_different_types_are_told_apart(scene: Scene, console: Console) -> None:
    """Their panels have buttons that act: the wrong one would drain another server."""
    await asyncio.to_thread(scene.register, ["603"], type="lobby", hostname="lobby-603.example")
    await console.go("servers")
    address = "#/servers/603/lobby"
    await console.sees(f"document.querySelector('a[href=\"{address}\"]')", "an address with the type")
    await console.go("servers/603/lobby")
    await console.shows("lobby-603.example")
    await console.go("servers/603/battle")
    await console.shows("battle-603.example")

    await console.go("servers")
    await console.sees("document.querySelector('select[aria-label=Type] option[value=lobby]')")
    await console.fill("select[aria-label=Type]", "lobby")
    await console.shows("1 of 5")
    found = await asyncio.to_thread(scene.call, "GET", "/sd/v1/instances?type=lobby")
    lobby = found["instances"][0]["instanceId"]
    await asyncio.to_thread(scene.call, "DELETE", f"/sd/v1/instances/{lobby}")
    await console.shows("4 in all")  # what filtered is gone, and nothing is filtered any more


async def test_ring_is_drawn_previewed_and_explained(console: Console) -> None:
    await console.go("ring/battle:kr-1")
    await console.sees("document.querySelectorAll('.part').length > 0", "the ring")
    await console.shows("Share of keys", "601", "2 servers")
    colours = "[...document.querySelectorAll('.swatch')].map(one => one.className)"
    await console.sees(f"{colours}.length === 2 && new Set({colours}).size === 2", "a colour for each server")
    await console.fill("#ring-add", "609")
    await console.press("Preview")
    await console.shows("of all keys would move.")
    await console.fill("#ring-key", "player-42")
    await console.press("Explain")
    await console.shows("player-42 goes to 60", "of the turn")
    await console.sees("document.querySelector('line.needle')", "the key on the ring")
    await console.fill("#ring-add", "")
    await console.fill("#ring-remove", "601")
    await console.press("Preview")
    moves = "[...document.querySelectorAll('.moves li')].map(one => one.innerText.replace(/\\s+/g, ' '))"
    await console.sees(f"{moves}.some(one => one.startsWith('601 → 604'))", "the keys of 601 to move")
    await console.sees(f"!{moves}.some(one => one.includes('609'))", "nobody else to come")


async def test_waiting_room_is_seen_and_governed(scene: Scene, console: Console) -> None:
    await asyncio.to_thread(scene.start_game, "701", 5)
    await console.go("queue/main")
    await console.press("Hold")
    await console.shows("Hold main?", "keep their places and wait")
    await console.press("Hold")
    await console.shows("main is held.", "Resume")
    await asyncio.to_thread(scene.flood, 25)
    await console.sees("document.querySelector('.figure b').textContent === '25'", "the flood")
    for label, field, value, name, wanted in (
        ("Cap", "dialog input", "3", "limit", 3),
        ("Rate", "dialog input", "2.5", "rate", 2.5),
        ("Message", "dialog textarea", "patch <b>1.4</b>", "message", "patch <b>1.4</b>"),
        ("Mode", "dialog select", "queue-all", "mode", "queue-all"),
        ("Open at", "dialog input", "2036-01-02T03:04", "opensAt", None),
    ):
        await console.press(label)
        await console.fill(field, value)
        await console.press("Set")
        await eventually(partial(_governed, scene, name, wanted), f"{name} to be {wanted}")
    await console.shows("Opens at", "patch <b>1.4</b>", "at most 3 inside")
    await console.press("Open at")
    await console.fill("dialog input", "")
    await console.press("Set")
    await eventually(lambda: _entered(scene, 3), "three tickets")


async def test_a_server_is_dropped_from_the_ledger(scene: Scene, console: Console) -> None:
    await asyncio.to_thread(scene.start_game, "702", 7)
    await console.go("queue/main")
    await console.shows("701", "702")
    row = "[...document.querySelectorAll('tr')].find(one => one.innerText.includes('702'))"
    await console.click(f"{row}.querySelector('button')")
    await console.shows("Take 702 out of the ledger?", "keep their order")
    await console.press("Drop")
    await console.shows("702 is out of the ledger.")
    assert [row["serverId"] for row in (await world_of(scene))["servers"]] == ["701"]


async def _governed(scene: Scene, name: str, wanted: object) -> bool:
    found = (await world_of(scene))[name]
    return bool(found == wanted if wanted is not None else found)


async def _entered(scene: Scene, tickets: int) -> bool:
    return int((await world_of(scene))["tickets"]) == tickets


async def test_what_if_tells_the_wait_without_changing_anything(scene: Scene, console: Console) -> None:
    before = await world_of(scene)
    await console.go("queue/main")
    await console.shows("What if", "The last waits")
    await console.fill("#forecast-leaving", "50")
    await console.shows("come free; at most")
    await console.sees("!document.querySelector('.sliders').closest('.card').innerText.includes('no end')")
    assert (await world_of(scene))["revision"] == before["revision"]


async def test_what_if_sends_only_what_was_changed(scene: Scene, console: Console) -> None:
    """A slider has a hundred steps: what nobody touched would be rounded."""
    await console.page.value(
        """window.fetch = (real => (path, how) => {
          if (path.endsWith('/forecast')) (window.asked ??= []).push(JSON.parse(how.body));
          return real(path, how);
        })(window.fetch)"""
    )
    try:
        await console.go("servers")
        await console.go("queue/main")
        await console.sees("window.asked?.length > 0", "the world as it is to be asked about")
        as_it_is = {"waiting": None, "limit": -1, "rate": -1, "leavingPerSecond": None}
        assert await console.page.value("window.asked.at(-1)") == as_it_is
        await console.fill("#forecast-limit", "50")
        await console.sees("window.asked.at(-1).limit > 0", "the limit to be asked about")
        found = await console.page.value("window.asked.at(-1)")
        assert found == as_it_is | {"limit": found["limit"]}
        await console.fill("#forecast-limit", "100")
        await console.sees("window.asked.at(-1).limit === null", "no limit to be asked about")
    finally:
        await console.page.reload()
        await console.is_live()


async def test_a_page_that_was_left_asks_nothing_more(console: Console) -> None:
    await console.page.value(
        """window.fetch = (real => async (path, how) => {
          if (path.endsWith('/forecast')) window.forecasts = (window.forecasts ?? 0) + 1;
          const answer = await real(path, how);
          if (!path.endsWith('/worlds')) return answer;
          window.isHeld = true;
          await new Promise(go => { window.letGo = go; });
          window.goneAt = performance.now();
          return answer;
        })(window.fetch)"""
    )
    try:
        await console.go("servers")
        await console.go("queue/main")
        await console.sees("window.isHeld", "the worlds' answer to be under way")
        await console.go("servers")
        await console.sees("document.querySelector('nav a[aria-current]').hash === '#/servers'")
        before = await console.page.value("window.forecasts ?? 0")
        await console.page.value("window.letGo()")
        await console.sees("performance.now() - window.goneAt > 500", "the time in which it would have asked")
        assert await console.page.value("window.forecasts ?? 0") == before
    finally:
        await console.page.reload()
        await console.is_live()


async def test_audit_has_every_act_and_is_searched(console: Console) -> None:
    await console.go("audit")
    await console.sees("document.querySelectorAll('tbody tr').length > 5", "the acts of these tests")
    await console.shows("root", "console")
    await console.fill("input[placeholder=What]", "world.govern")
    acts = "[...document.querySelectorAll('td button.link')].map(one => one.textContent)"
    await console.sees(f"{acts}.length && {acts}.every(one => one === 'world.govern')", "what was asked for")
    await console.click("document.querySelector('td button.link')")
    await console.sees("document.querySelector('aside pre.json')", "what was before and after")
    assert await console.page.value("fetch('/audit/v1/export').then(one => one.status)") == 200


async def test_older_acts_are_a_press_away(scene: Scene, console: Console) -> None:
    def act_often() -> None:
        for number in range(205):
            scene.call("PATCH", "/queue/v1/worlds/main", {"rate": 100 + number})

    await asyncio.to_thread(act_often)
    await console.go("servers")
    await console.go("audit")
    rows = "document.querySelector('table').getAttribute('aria-rowcount')"
    await console.sees(f"{rows} === '201'", "a page of acts")
    await console.press("Older")
    await console.sees(f"Number({rows}) > 205", "those before")
    await console.sees(
        "[...document.querySelectorAll('button')].find(one => one.textContent === 'Older').hidden"
    )
    await asyncio.to_thread(scene.call, "PATCH", "/queue/v1/worlds/main", {"rate": None})


@pytest.mark.parametrize("name", [*PAGES, "servers/601"])
async def test_a_page_outlives_its_reload(console: Console, name: str) -> None:
    await console.go(name)
    await console.page.reload()
    await console.is_live()
    page, _, server = name.partition("/")
    await console.sees(f"document.querySelector('nav a[aria-current]').hash === '#/{page}'")
    if server:
        await console.shows("History", "Verify now")


async def test_it_speaks_korean_and_turns_dark(scene: Scene, console: Console) -> None:
    await console.go("servers")
    await console.fill("header select", "ko")
    await console.shows("서버", "대기실", "감사 기록")
    await asyncio.to_thread(scene.register, ["605"], weight=0)
    await console.go("overview")
    await console.shows("605 (battle) 서버가 등록되었습니다")
    await console.go("ring/battle:kr-1")
    await console.shows("가중치 0")
    await console.fill("header select[aria-label='밝게 / 어둡게']", "dark")
    assert await console.page.value("document.documentElement.dataset.theme") == "dark"
    await console.page.reload()
    await console.shows("무중단 교체")
    assert await console.page.value("getComputedStyle(document.body).backgroundColor") == "rgb(14, 19, 26)"
    await console.fill("header select", "en")
    await console.fill("header select[aria-label='Light or dark']", "system")
    await console.shows("Hot update")


async def test_everything_fits_a_phone(console: Console) -> None:
    await console.page.resize(360, 740, is_phone=True)
    try:
        for name in (*PAGES, "servers/601"):
            await console.go(name)
            await console.sees("document.querySelector('h1')")
            wide = await console.page.value("document.documentElement.scrollWidth")
            assert wide <= 360, f"{name} is {wide} px wide"
        await console.page.resize(*PHONE, is_phone=True)
        for name, row in (
            ("servers", "601"),
            ("ring/battle:kr-1", "601"),
            ("queue/main", "701"),
            ("audit", "root"),
        ):
            await console.go(name)
            await console.shows(row)
            assert await console.cut_off() == [], name
    finally:
        await console.page.resize(1280, 900)


async def test_a_token_that_is_not_known_is_refused_in_words(scene: Scene, console: Console) -> None:
    await console.press("Log out")
    await console.fill("#token", "not-a-token")
    await console.press("Log in")
    await console.shows("This token is not known, or was revoked.")
    await console.provoked("401", "/auth/v1/session")
    blind = await asyncio.to_thread(scene.new_token, "register")
    await console.fill("#token", blind)
    await console.press("Log in")
    await console.shows("the scope read")
    await console.provoked("403", "/overview/v1")
    await console.fill("#token", scene.home.token())
    await console.press("Log in")
    await console.is_live()


async def test_whoever_may_only_read_sees_everything_and_can_press_nothing(
    scene: Scene, console: Console
) -> None:
    token = await asyncio.to_thread(scene.new_token, "read")
    await console.go("servers/601")
    await console.log_in(token)
    await console.shows("read only", "reader", "History")
    for name in ("servers/601", "queue/main"):
        await console.go(name)
        await console.sees("document.querySelector('button:disabled[title*=\"lacks the scope\"]')", name)
    hold = "[...document.querySelectorAll('main button')].find(one => one.textContent === 'Hold')"
    assert await console.page.value(f"(({hold})?.disabled ?? true)")
    refused = await console.page.value(
        "fetch('/queue/v1/worlds/main', {method: 'PATCH', body: '{}'}).then(one => one.status)"
    )
    assert refused == 403
    await console.provoked("403", "/queue/v1/worlds/main")


async def test_no_page_made_the_browser_complain(console: Console) -> None:
    assert console.complaints() == []
