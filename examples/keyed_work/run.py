"""Deposits and withdrawals of three accounts: each account in order, all accounts at the same time."""

import asyncio

import roost

balances = {"ann": 0, "bob": 0, "eve": 0}


async def book(account: str, amount: int) -> int:
    before = balances[account]
    await asyncio.sleep(0.001)  # a database, say: without lanes another booking would come in between
    if before + amount < 0:
        raise ValueError(f"{account} has only {before}")
    balances[account] = before + amount
    return balances[account]


async def main() -> None:
    async with roost.LaneExecutor(book, queue_limit=1_000, deadline_ms=5_000) as executor:
        for amount in range(1, 101):
            for account in balances:
                if isinstance(refused := executor.submit(account, amount), roost.Rejected):
                    print(f"{account}: {refused.reason.value}, again in {refused.retry_after_ms} ms")
        print("ann has", await executor.run("ann", -50))
        try:
            await executor.run("bob", -6_000)
        except ValueError as error:
            print("refused:", error)
    print("in the end", balances)


asyncio.run(main())
