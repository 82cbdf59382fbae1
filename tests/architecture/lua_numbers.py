"""Finds numbers that a Lua file joins to text as they are.

`..` and table.concat write a number with 14 digits: a life or a time in µs becomes 1.76e+15. A number is a
name that is made by arithmetic, by `tonumber`, `math.…` or by one of our clocks, or an argument of the type
int; it goes through `int()` or `string.format` first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tests.architecture.lua_checker import Function, Token, calls_in, locals_in, split_functions, tokens_of

MAKERS = {"tonumber", "math", "now_us", "lease_clock"}
CLOCKS = {"now", "clock"}
SIGNS = {"+", "-", "*", "/", "%"}


def joined_numbers(name: str, text: str, int_args: Collection[str] = ()) -> list[str]:
    """One line for every number of the file that is joined as it is; `int_args` are the script's."""
    return [
        f"{name} line {line}: {what} is a number: join int({what})"
        for function in split_functions(name, tokens_of(text))
        for what, line in _joined(function, int_args)
    ]


def _joined(function: Function, int_args: Collection[str]) -> Iterator[tuple[str, int]]:
    numbers = CLOCKS & set(function.parameters)
    numbers |= {name for name, value, _ in locals_in(function.tokens) if _is_number(value)}
    numbers |= {f"args.{name}" for name in int_args}
    tokens = function.tokens
    for at, token in enumerate(tokens):
        if token.text == "..":
            for word in (_word_before(tokens, at), _word_after(tokens, at)):
                if word in numbers:
                    yield word, token.line
    for call in calls_in(tokens):
        if call.name == "table.concat":
            for element in _elements(tokens[call.at + 1 :]):
                if element in numbers:
                    yield element, call.line


def _is_number(value: list[Token]) -> bool:
    """Made by one that makes numbers, or by arithmetic; a condition may choose text."""
    texts = [token.text for token in value]
    outside = list(_outside_brackets(texts))
    if ".." in texts or {"and", "or"} & set(outside):
        return False
    return bool(texts) and (texts[0] in MAKERS or bool(SIGNS & set(outside)))


def _outside_brackets(texts: list[str]) -> Iterator[str]:
    depth = 0
    for text in texts:
        depth += (text in ("(", "{", "[")) - (text in (")", "}", "]"))
        if depth == 0:
            yield text


def _word_before(tokens: list[Token], at: int) -> str:
    if at >= 3 and tokens[at - 2].text == ".":
        return f"{tokens[at - 3].text}.{tokens[at - 1].text}"
    return tokens[at - 1].text


def _word_after(tokens: list[Token], at: int) -> str:
    word, sign, field = (*(token.text for token in tokens[at + 1 : at + 4]), "", "", "")[:3]
    if sign == ".":
        return f"{word}.{field}"
    return "" if sign in ("(", "[") else word


def _elements(tokens: list[Token]) -> Iterator[str]:
    """The elements of `({ a, b, args.c }, …)` that are a name, or a field of a table."""
    words: list[str] = []
    depth = 0
    for token in tokens:
        depth += (token.text in ("(", "{", "[")) - (token.text in (")", "}", "]"))
        if (depth == 2 and token.text == ",") or (depth < 2 and words):
            yield "".join(words)
            words = []
        elif depth >= 2 and token.text != "{":
            words.append(token.text)
        if depth == 0:
            return
