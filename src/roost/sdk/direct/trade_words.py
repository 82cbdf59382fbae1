"""What order servers say on the wire, in the words of `roost.sdk.trade`; for whoever trades with them."""

from __future__ import annotations

from typing import cast

from roost.api.discovery import Instance
from roost.lanes.commands import Durability, Event, Outcome, State
from roost.lanes.commands import Side as SideNumber
from roost.sdk.direct.resending import Said
from roost.sdk.trade import Fill, OrderAccepted, OrderRefused, OrderState, Receipt, Side


def address_of(instance: Instance) -> str:
    """Where an order server takes commands; empty: it does not say."""
    host, port = instance.private_ip or instance.hostname or instance.public_ip, instance.ports.get("wire")
    return f"{host}:{port}" if host and port else ""


def answered(outcome: Outcome, number: int) -> OrderAccepted | OrderRefused:
    durability = Durability(outcome.durability).word
    receipt = Receipt(outcome.shard, outcome.lane, outcome.epoch, outcome.seq, durability, outcome.at_ms)
    if outcome.state == State.REFUSED:
        said = f"the shard refused it: {outcome.reason}"
        return OrderRefused(outcome.reason, said, number, outcome.order_id, receipt=receipt)
    state = state_word(outcome.state)
    return OrderAccepted(outcome.order_id, state, outcome.filled, outcome.remaining, receipt, number)


def refused(said: Said, number: int, order_id: int) -> OrderRefused:
    return OrderRefused(said.reason, said.message, number, order_id, said.retry_after_ms, said.depth)


def fill_of(event: Event) -> Fill:
    return Fill(
        event.shard,
        event.number,
        event.seq,
        event.order_id,
        event.symbol,
        side_word(event.side),
        event.price,
        event.quantity,
        event.remaining,
        event.at_ms,
    )


def side_word(side: int) -> Side:
    return cast(Side, SideNumber(side).name.lower())


def state_word(state: int) -> OrderState:
    return cast(OrderState, State(state).name.lower())
