"""Reads a Lua script as a stranger would, and says where it leaves its contract.

    faults_of("leader_campaign", text, includes)    one line per fault; empty for a good script

It is no Lua parser: it knows tokens, blocks and calls, and insists on the plain forms that our scripts
use. A key is `keys.name`, `keys.prefix .. id`, or a parameter that every caller fills with one of these; a
function that takes `keys` is held to the contract of the script that calls it. Whatever it cannot follow is a
fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from roost.store.contract import Contract, ContractError, parse_script


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


READS_FIRST = _words("""
    GET STRLEN GETRANGE TYPE TTL PTTL HGET HMGET HGETALL HLEN HEXISTS HKEYS HVALS HSTRLEN
    HRANDFIELD SCARD SISMEMBER SMISMEMBER SMEMBERS SRANDMEMBER ZCARD ZCOUNT ZSCORE ZMSCORE ZRANGE
    ZRANGEBYSCORE ZREVRANGE ZREVRANGEBYSCORE ZRANK ZREVRANK ZRANDMEMBER ZLEXCOUNT LLEN LRANGE LINDEX
    LPOS XLEN XRANGE XREVRANGE HSCAN SSCAN ZSCAN BITCOUNT GETBIT PFCOUNT
""")
WRITES_FIRST = _words("""
    SET SETEX PSETEX SETNX GETSET GETDEL GETEX APPEND INCR INCRBY DECR DECRBY INCRBYFLOAT SETRANGE
    SETBIT EXPIRE PEXPIRE PEXPIREAT EXPIREAT PERSIST HSET HSETNX HDEL HINCRBY HINCRBYFLOAT HMSET
    SADD SREM SPOP ZADD ZREM ZINCRBY ZPOPMIN ZPOPMAX ZREMRANGEBYSCORE ZREMRANGEBYRANK ZREMRANGEBYLEX
    LPUSH RPUSH LPOP RPOP LSET LREM LTRIM LINSERT RPUSHX LPUSHX XADD XDEL XTRIM XSETID PFADD
    SPUBLISH
""")
READS_ALL = frozenset({"EXISTS", "MGET", "SINTER", "SUNION", "SDIFF"})
WRITES_ALL = frozenset({"DEL", "UNLINK"})
WRITES_TWO = frozenset({"RENAME", "RENAMENX", "SMOVE", "LMOVE", "COPY", "ZRANGESTORE"})
NO_KEY = frozenset({"TIME"})
WRITES = WRITES_FIRST | WRITES_ALL | WRITES_TWO

BUILT_IN = _words("""
    tonumber tostring type ipairs pairs unpack select next assert error pcall math string table redis
    cjson cmsgpack bit struct
""")
KEYWORDS = _words("""
    and break do else elseif end false for function if in local nil not or repeat return then true
    until while
""")

_TOKEN = re.compile(
    r"""(?P<comment>--[^\n]*)|(?P<string>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")"""
    r"|(?P<number>\d[\w.]*)|(?P<name>[A-Za-z_]\w*)|(?P<sign>\.\.\.|\.\.|[=~<>]=|[^\s\w])|(?P<space>\s+)"
)


class Token(NamedTuple):
    kind: str
    text: str
    line: int


def tokens_of(text: str) -> list[Token]:
    """The text without spaces and comments."""
    found: list[Token] = []
    line = 1
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup or ""
        if kind not in ("comment", "space"):
            found.append(Token(kind, match.group(), line))
        line += match.group().count("\n")
    return found


class Called(NamedTuple):
    """A call `name(arguments)`; each argument is its tokens."""

    name: str
    arguments: list[list[Token]]
    line: int
    at: int


@dataclass
class Function:
    """A stretch of code with parameters: an include, a local function, or the script itself."""

    name: str
    parameters: list[str]
    tokens: list[Token]
    takes: dict[int, str] = field(default_factory=dict)
    """Position of a parameter → `key` or `prefix`, where it is used as one."""


def faults_of(name: str, text: str, includes: Mapping[str, str], *folders: Path) -> list[str]:
    """Every fault of one script; `includes` holds the text of all function files."""
    try:
        contract = parse_script(name, text, *folders)
    except ContractError as error:
        return [str(error)]
    body = split_functions(name, tokens_of(contract.body))
    wanted = _closure(contract.includes, includes)
    functions = [f for include in wanted for f in split_functions(include, tokens_of(includes[include]))[1:]]
    known = {f.name: f for f in (*functions, *body[1:])}
    faults = [*_learn_parameters(known), *_binding_faults(contract, body[0], known)]
    faults += _key_faults(contract, body[0], known)
    faults += _call_faults(contract, body, known)
    faults += _reply_faults(contract, body[0])
    faults += _loop_faults(contract.body)
    return [f"{name}: {fault}" for fault in faults]


def include_faults(name: str, text: str) -> list[str]:
    """A shared file holds one function, which bears its name, and nothing else."""
    outside, *functions = split_functions(name, tokens_of(text))
    faults = [f"{name}: {fault}" for fault in _loop_faults(text)]
    if [f.name for f in functions] != [name] or outside.tokens:
        faults.append(f"{name}: must hold exactly `local function {name}` and nothing else")
    if not text.startswith("--"):
        faults.append(f"{name}: must begin with a comment that says what it does")
    return faults


# -- structure


def split_functions(name: str, tokens: list[Token]) -> list[Function]:
    """The code outside of any function, then every `local function`."""
    outside: list[Token] = []
    functions: list[Function] = []
    at = 0
    while at < len(tokens):
        if tokens[at].text == "local" and tokens[at + 1].text == "function":
            end = _end_of_block(tokens, at + 1)
            close = next(i for i in range(at, end) if tokens[i].text == ")")
            parameters = [t.text for t in tokens[at + 4 : close] if t.kind == "name"]
            functions.append(Function(tokens[at + 2].text, parameters, tokens[close + 1 : end]))
            at = end + 1
        else:
            outside.append(tokens[at])
            at += 1
    return [Function(name, [], outside), *functions]


def _end_of_block(tokens: list[Token], start: int) -> int:
    """Position of the `end` that closes the block opened at `start`."""
    depth = 0
    for at in range(start, len(tokens)):
        text = tokens[at].text if tokens[at].kind == "name" else ""
        if text in ("function", "if", "do", "repeat"):  # `for` and `while` have their own `do`
            depth += 1
        elif text in ("end", "until"):
            depth -= 1
            if depth == 0:
                return at
    raise ValueError(f"line {tokens[start].line}: block without end")


def calls_in(tokens: list[Token]) -> Iterator[Called]:
    for at, token in enumerate(tokens[:-1]):
        if tokens[at + 1].text == "(" and token.kind == "name" and token.text not in KEYWORDS:
            dotted = token.text
            if at >= 2 and tokens[at - 1].text == ".":
                dotted = f"{tokens[at - 2].text}.{dotted}"
            yield Called(dotted, _split(tokens, at + 1), token.line, at)


def _split(tokens: list[Token], start: int) -> list[list[Token]]:
    """The parts between the bracket at `start` and its partner, split at the commas of that level."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens[start:]:
        if token.text in ("(", "{", "["):
            depth += 1
        elif token.text in (")", "}", "]"):
            depth -= 1
            if depth == 0:
                break
        if depth == 1 and token.text == ",":
            parts.append([])
        elif depth > 1 or token.text not in ("(", "{", "["):
            parts[-1].append(token)
    return [part for part in parts if part]


def locals_in(tokens: list[Token]) -> Iterator[tuple[str, list[Token], int]]:
    """(name, tokens of its value, line) of every `local a, b = x, y`."""
    for at, token in enumerate(tokens):
        if token.text != "local" or tokens[at + 1].text == "function":
            continue
        names = [tokens[at + 1]]
        while tokens[at + 2 * len(names)].text == ",":
            names.append(tokens[at + 2 * len(names) + 1])
        equals = at + 2 * len(names)
        values = _values(tokens, equals + 1) if tokens[equals].text == "=" else []
        for position, name in enumerate(names):
            yield name.text, values[position] if position < len(values) else [], name.line


def _values(tokens: list[Token], start: int) -> list[list[Token]]:
    """The expressions of an assignment: up to where a new statement begins."""
    values: list[list[Token]] = [[]]
    depth = 0
    for at in range(start, len(tokens)):
        token = tokens[at]
        starts_anew = at > start and token.kind == "name" and _ends_value(tokens[at - 1])
        if depth == 0 and (
            starts_anew or token.text in ("local", "return", "if", "for", "while", "end", "else")
        ):
            break
        depth += (token.text in ("(", "{", "[")) - (token.text in (")", "}", "]"))
        if depth == 0 and token.text == ",":
            values.append([])
        else:
            values[-1].append(token)
    return values


def _ends_value(token: Token) -> bool:
    if token.text in ("and", "or", "not"):
        return False
    return token.kind in ("name", "number", "string") or token.text in (")", "]", "}")


def _closure(wanted: tuple[str, ...], includes: Mapping[str, str]) -> list[str]:
    found: list[str] = []
    for name in wanted:
        inner = tuple(re.findall(r"-- @include ([a-z0-9_]+)", includes.get(name, "")))
        found += [i for i in (*_closure(inner, includes), name) if i not in found]
    return found


# -- KEYS and ARGV


def _binding_faults(contract: Contract, script: Function, functions: dict[str, Function]) -> Iterator[str]:
    """What came in is found by name: every key and argument is used, no other is, and none is assigned."""
    everywhere = (script, *functions.values())
    for array, table, parameters in (("KEYS", "keys", contract.keys), ("ARGV", "args", contract.args)):
        declared = {p.name for p in parameters}
        readers = everywhere if table == "keys" else (script,)
        used = {name for function in readers for name in _fields_of(table, function.tokens)}
        for function in everywhere:
            if any(token.text == array for token in function.tokens):
                yield f"{function.name} uses {array}: what came in is {table}.name"
            if table == "args" and function is not script and list(_fields_of(table, function.tokens)):
                yield f"{function.name} uses args: a function gets what it needs"
        if missing := sorted(used - declared):
            yield f"{table}.{missing[0]} is not declared under {array}"
        if unused := sorted(declared - used):
            yield f"{array} declares {unused}, which nobody uses"
        if _is_assigned(table, script.tokens):
            yield f"{table} is assigned anew"


def _fields_of(table: str, tokens: list[Token]) -> Iterator[str]:
    """`index` of every `keys.index`."""
    for at, token in enumerate(tokens[:-2]):
        if token.text == table and tokens[at + 1].text == "." and (at == 0 or tokens[at - 1].text != "."):
            yield tokens[at + 2].text


def _is_assigned(table: str, tokens: list[Token]) -> bool:
    """Whether the table, or one of its fields, gets a value."""
    for at, token in enumerate(tokens[:-1]):
        if token.text != table or (at and tokens[at - 1].text == "."):
            continue
        end = at + 3 if tokens[at + 1].text == "." else at + 1
        if end < len(tokens) and tokens[end].text == "=":
            return True
    return False


# -- keys in calls


def _learn_parameters(functions: dict[str, Function]) -> list[str]:
    """Find out which parameters are keys, through functions that call functions; returns their faults."""
    faults: list[str] = []
    for _ in functions:
        faults = []
        for function in functions.values():
            made = _made_from(set(function.parameters), function.tokens)
            for argument, kind, line in _key_arguments(function.tokens, functions):
                if _table_field(argument) or _made_of_table(argument, function.tokens):
                    continue  # held against the contract of the script that calls
                word = argument[0].text if argument else ""
                parameter = made.get(word, word) if len(argument) == 1 else word
                if parameter not in function.parameters or (len(argument) > 1 and argument[1].text != ".."):
                    faults.append(
                        f"{function.name} line {line}: {_show(argument)} is no parameter used as a {kind}"
                    )
                    continue
                is_prefix = kind == "prefix" or len(argument) > 1 or word in made
                function.takes[function.parameters.index(parameter)] = "prefix" if is_prefix else "key"
    return faults


def _made_from(prefixes: set[str], tokens: list[Token]) -> dict[str, str]:
    """Local name → the parameter that an id was appended to."""
    return {
        name: value[0].text
        for name, value, _ in locals_in(tokens)
        if len(value) > 2 and value[0].text in prefixes and value[1].text == ".."
    }


def _table_field(argument: list[Token]) -> str:
    """`index` of `keys.index` and of `keys.records .. id`; empty for anything else."""
    texts = [t.text for t in argument]
    return texts[2] if len(texts) >= 3 and texts[:2] == ["keys", "."] else ""


def _made_of_table(argument: list[Token], tokens: list[Token]) -> bool:
    """Whether it is a local name for `keys.prefix .. id`."""
    return len(argument) == 1 and any(
        name == argument[0].text and _table_field(value) and len(value) > 4 and value[3].text == ".."
        for name, value, _ in locals_in(tokens)
    )


def _key_faults(contract: Contract, script: Function, functions: dict[str, Function]) -> Iterator[str]:
    """Every key that the script and its functions hand on is a declared one, in its declared form."""
    for function in (script, *functions.values()):
        listed = _walked_lists(contract, function.tokens)
        values = {name: value for name, value, _ in locals_in(function.tokens)}
        for argument, kind, line in _key_arguments(function.tokens, functions):
            given = argument
            if len(given) == 1 and _made_of_table(given, function.tokens):
                given = values[given[0].text]
            if function is not script and not _table_field(given):
                continue  # a parameter: `_learn_parameters` has looked at it
            if len(given) == 1 and given[0].text in listed:
                continue
            if not _is_key(given, kind, contract):
                where = "" if function is script else f"{function.name} "
                yield f"{where}line {line}: {_show(argument)} is not a declared {kind}"


def _walked_lists(contract: Contract, tokens: list[Token]) -> set[str]:
    """Names that walk a declared list of keys: `for _, key in ipairs(keys.many)`."""
    text = " ".join(t.text for t in tokens)
    many = {p.name for p in contract.keys if p.many}
    walked = re.findall(r"for \w+ , (\w+) in ipairs \( keys \. (\w+) \)", text)
    return {name for name, table in walked if table in many}


def _is_key(argument: list[Token], kind: str, contract: Contract) -> bool:
    declared = next((p for p in contract.keys if p.name == _table_field(argument)), None)
    if declared is None:
        return False
    after = [t.text for t in argument[3:]]
    if declared.many:
        return after[:1] == ["["]
    appends = after[:1] == [".."]
    if kind == "prefix":
        return declared.prefix and not after
    return appends if declared.prefix else not after


def _key_arguments(
    tokens: list[Token], functions: dict[str, Function]
) -> Iterator[tuple[list[Token], str, int]]:
    """(argument, `key` or `prefix`, line) of every place where a key is handed on."""
    for call in calls_in(tokens):
        if call.name in ("redis.call", "redis.pcall") and call.arguments:
            command = call.arguments[0][0].text.strip("'\"")
            for argument in _keys_of(command, call.arguments[1:]):
                yield argument, "key", call.line
        elif call.name in functions:
            for position, kind in sorted(functions[call.name].takes.items()):
                given = call.arguments[position] if position < len(call.arguments) else []
                yield given, kind, call.line


def _keys_of(command: str, arguments: list[list[Token]]) -> list[list[Token]]:
    if command in READS_ALL | WRITES_ALL:
        return arguments
    if command in WRITES_TWO:
        return arguments[:2]
    return arguments[:1] if command in READS_FIRST | WRITES_FIRST else []


def _show(argument: list[Token]) -> str:
    return " ".join(t.text for t in argument) or "nothing"


# -- commands and functions


def _call_faults(contract: Contract, body: list[Function], functions: dict[str, Function]) -> Iterator[str]:
    writes = False
    called: set[str] = set()
    script = body[0]
    for function in (script, *functions.values()):
        names = {*function.parameters, *functions, *(name for name, _, _ in locals_in(function.tokens))}
        for call in calls_in(function.tokens):
            root = call.name.partition(".")[0]
            called.add(call.name)
            if call.name in ("redis.call", "redis.pcall"):
                command = call.arguments[0] if call.arguments else []
                yield from _command_faults(command, call.line)
                writes |= bool(command) and command[0].text.strip("'\"") in WRITES
            elif root not in BUILT_IN and root not in names and not _is_method(function.tokens, call):
                yield f"line {call.line}: {call.name} is no function that is included or local"
    for include in contract.includes:
        if include not in called:
            yield f"includes {include} and does not call it"
    if contract.writes != writes:
        yield "writes, but says no-writes" if writes else "writes nothing: say #!lua flags=no-writes"


def _command_faults(command: list[Token], line: int) -> Iterator[str]:
    if len(command) != 1 or command[0].kind != "string":
        yield f"line {line}: the command must be a literal, not {_show(command)}"
    elif command[0].text.strip("'\"") not in READS_FIRST | READS_ALL | WRITES | NO_KEY:
        yield f"line {line}: the command {command[0].text} is not allowed, or not known here"


def _is_method(tokens: list[Token], call: Called) -> bool:
    return call.at > 0 and tokens[call.at - 1].text == ":"


# -- replies and loops


def _reply_faults(contract: Contract, script: Function) -> Iterator[str]:
    """Every answer is a literal list that begins with a declared word and has its fields; all words occur."""
    declared = {reply.word: len(reply.fields) for reply in contract.replies}
    returned: set[str] = set()
    for at, token in enumerate(script.tokens):
        if token.text != "return":
            continue
        after = script.tokens[at + 1 : at + 3]
        if [t.text for t in after][:1] != ["{"] or len(after) < 2 or after[1].kind != "string":
            yield f"line {token.line}: an answer must be written as return {{ 'WORD', … }}"
            continue
        word = after[1].text.strip("'\"")
        fields = _split(script.tokens, at + 1)[1:]
        returned.add(word)
        if word not in declared:
            yield f"line {token.line}: {word} is not in REPLY"
        elif len(fields) != declared[word] and not any(f[0].text == "unpack" for f in fields):
            yield f"line {token.line}: {word} has {declared[word]} fields in REPLY and {len(fields)} here"
    if missing := sorted(declared.keys() - returned):
        yield f"REPLY declares {missing}, which is never returned"


def _loop_faults(text: str) -> Iterator[str]:
    lines = text.splitlines()
    for token in tokens_of(text):
        if token.kind == "name" and token.text in ("while", "repeat"):
            near = lines[max(0, token.line - 2) : token.line]
            if not any("-- bound:" in line for line in near):
                yield f"line {token.line}: `{token.text}` without a `-- bound:` comment"
