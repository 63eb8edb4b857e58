"""The teaching page as a class uses it: its links open what they name, its commands are there and print the answer."""

import re
import subprocess
import sys

import pytest

from rosetta.paths import ROOT

TEXT = (ROOT / "docs" / "teaching.md").read_text(encoding="utf-8")
LESSONS = TEXT.split("\n## ")[2:]
COMMANDS = re.findall(
    r"^    \.venv/bin/python -c '\n([^']*)'\n(?:(?!\*\*Exercise).)*?\*Answer\*: `([^`]+)`",
    TEXT,
    re.DOTALL | re.MULTILINE,
)


def test_every_place_is_a_link_that_opens_it(reader, site):
    page = reader.open("docs/teaching.html")
    hrefs = page.locator("main a").evaluate_all("links => links.map(link => link.href)")
    assert page.locator("main a:not([href])").count() == 0, "a link that the site could not resolve"
    assert len(hrefs) >= 14 and all(href.startswith("file://") for href in hrefs)
    assert not re.search(r"`\S+\.html\S*`", TEXT), "an address that is no link"
    page.get_by_role("link", name="Model of all three, side by side").click()
    page.wait_for_selector("#model article:nth-child(3)")
    assert page.url.endswith("#tensorflow1+pytorch+flax/model")
    page = reader.open("docs/teaching.html")
    page.get_by_role("link", name="The row Dropout of the concept table").click()
    page.wait_for_selector("tr.here")
    assert page.locator("tr.here").get_attribute("id") == "dropout"
    assert page.locator("thead th:visible").all_inner_texts() == ["Concept", "PyTorch", "Flax", "TensorFlow 1"]


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.partition(".")[0])
def test_lesson_says_at_its_head_what_it_needs(lesson):
    head = lesson.partition("| minutes |")[0]
    assert "*This lesson needs the environments" in head
    assert ("tensorflow1" in lesson) == ("Python 3.6" in head)


@pytest.mark.parametrize(
    "exercise", re.split(r"^\*\*Exercise ", TEXT, flags=re.MULTILINE)[1:], ids=lambda text: text[:3]
)
def test_exercise_has_a_command_before_its_answer(exercise):
    before, _, after = exercise.partition("*Answer*: ")
    assert after and re.search(r"^    (python3 run_all|print|\.venv/bin/python)", before, re.MULTILINE)


@pytest.mark.parametrize("code, answer", COMMANDS)
def test_command_prints_the_answer(code, answer):
    code = re.sub(r"^    ", "", code, flags=re.MULTILINE)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == answer, done.stderr
