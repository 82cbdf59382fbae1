"""The runner of stories, with verbs that need no server."""

from __future__ import annotations

from pathlib import Path

import pytest

from roost.testing import Command, Names, StoryFault, StoryRunner
from roost.testing.stories import parse_command

STORY = """\
# One comes, and is remembered.
come ann
----
<id-1> came: ann

# Two commands in one block; a name may stand in a command.
come "bob the second" loud=yes
ask <id-1>
----
<id-2> came: bob the second, loudly
<id-1>
"""


def runner() -> StoryRunner:
    known: list[str] = []

    async def come(command: Command) -> str:
        known.append(f"x{id(known)}-{len(known)}")
        options = ", loudly" if command.options.get("loud") == "yes" else ""
        return f"{known[-1]} came: {command.args[0]}{options}"

    async def ask(command: Command) -> str:
        return command.args[0] if command.args[0] in known else "nobody"

    async def say(command: Command) -> str:
        return "\n".join(command.args)

    async def fail(command: Command) -> str:
        raise KeyError(*command.args)

    verbs = {"come": come, "ask": ask, "say": say, "fail": fail}
    return StoryRunner(verbs, Names({"id": r"\bx\d+-\d+\b"}))


async def test_a_story_that_happens_so_passes_and_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "story.txt"
    path.write_text(STORY)
    await runner().run(path)
    await runner().run(path, rewrite=True)
    assert path.read_text() == STORY


async def test_a_wrong_answer_fails_with_a_diff_that_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "story.txt"
    path.write_text(STORY.replace("came: ann", "came: eve"))

    with pytest.raises(AssertionError) as caught:
        await runner().run(path)

    assert str(caught.value) == "\n".join(
        [
            f"{path} does not tell what happens:",
            "--- story.txt, as it is told",
            "+++ as it happens",
            "@@ -1,7 +1,7 @@",
            " # One comes, and is remembered.",
            " come ann",
            " ----",
            "-<id-1> came: eve",
            "+<id-1> came: ann",
            " ",
            " # Two commands in one block; a name may stand in a command.",
            ' come "bob the second" loud=yes',
        ]
    )


async def test_a_story_is_put_right_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "story.txt"
    path.write_text("# New.\ncome ann\n----\n\ncome bob\n----\nold\nolder\n")
    await runner().run(path, rewrite=True)
    assert (
        path.read_text() == "# New.\ncome ann\n----\n<id-1> came: ann\n\ncome bob\n----\n<id-2> came: bob\n"
    )
    await runner().run(path)


@pytest.mark.parametrize(
    ("story", "fault"),
    [
        ("go away\n----\n", "story:1: no verb 'go'; there are ask, come, fail, say"),
        ("# x\ncome ann\n\n", "story:3: a command without ---- below it"),
        ("come ann\n", "story: the last command has no ---- below it"),
        ("\n----\nx\n", "story:2: ---- without a command above it"),
        ('come "ann\n----\n', "story:1: No closing quotation"),
        ("say a '' b\n----\n", "story:1: an answer with a blank line would end its block"),
    ],
)
async def test_a_story_that_cannot_be_run_says_where(story: str, fault: str) -> None:
    with pytest.raises(StoryFault, match=fault):
        await runner().happens(story)


async def test_an_error_of_a_verb_is_passed_on_with_its_line() -> None:
    with pytest.raises(KeyError) as caught:
        await runner().happens("\nfail now\n----\n", "a.txt")
    assert caught.value.__notes__ == ["a.txt:2: fail now"]


def test_a_command_has_arguments_and_options() -> None:
    assert parse_command("enter ann class=vip 'two words'") == Command(
        "enter", ("ann", "two words"), {"class": "vip"}
    )


def test_names_are_given_in_the_order_of_appearance_and_kept() -> None:
    names = Names({"id": r"x\d+", "at": r"\d+ ms"})
    assert names.hide("x9 x7 after 12 ms, x9 again") == "<id-1> <id-2> after <at-1>, <id-1> again"
    assert names.hide("x7 x8") == "<id-2> <id-3>"
    assert names.reveal("<id-3> and <id-2>, not <id-4>") == "x8 and x7, not <id-4>"
