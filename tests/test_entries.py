"""Dictionaries: the contract of their cells, told with the entry; what a cell ends with as an array."""

import ast
import json
import re
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

from common import answers
from rosetta import catalog, entries, sections
from rosetta.errors import RosettaError
from rosetta.files import parse
from rosetta.notebook import cut
from rosetta.paths import checkout

KNOWN = catalog.load()
TASK = KNOWN.task("dictionary")
ENTRIES = entries.load(TASK.folder).entries
ROWS = {row.framework: row for row in KNOWN.rows("dictionary")}
WORD = re.compile(r"\w+")
SAME = "*Same.* It has the same name. [API](https://example.com)"


@pytest.fixture
def notebook(tmp_path):
    """Writes Flax's dictionary with a change of one cell's text or code, below a folder where its links lead somewhere."""

    def write(entry: str, text=None, code=None, tag=None):
        made = json.loads((TASK.folder / "flax.ipynb").read_text())
        place = next(n for n, cell in enumerate(made["cells"]) if cell["metadata"].get("tags") == [entry])
        words, cell = made["cells"][place - 1], made["cells"][place]
        heading = "".join(words["source"]).partition("\n\n*")[0]
        words["source"] = f"{heading}\n\n{text}" if text else words["source"]
        cell["source"] = code or cell["source"]
        cell["metadata"]["tags"] = [tag or entry]
        path = tmp_path / "notebooks" / "dictionary" / "flax.ipynb"
        path.parent.mkdir(parents=True)
        (path.parent / "README.md").touch()
        (tmp_path / "common").symlink_to(checkout.common)
        path.write_text(json.dumps(made))
        return [
            trouble.partition(".ipynb: ")[2] for trouble in entries.contract(path, TASK) if "it links" not in trouble
        ]

    return write


@pytest.mark.parametrize(
    "change, said",
    [
        (
            {"text": "It has the same name. [API](https://example.com)"},
            "gelu: its text does not begin with how it differs",
        ),
        ({"text": "*Alike.* It is. [API](https://example.com)"}, "gelu: its text does not begin with how it differs"),
        ({"text": "*Same.* It has the same name."}, "gelu: its text links no page"),
        ({"text": SAME.replace("It", "One. Two. Three. Four. It")}, "gelu: its text has 5 sentences; one to 4"),
        ({"text": SAME, "code": "y = x"}, "gelu does not end with an expression"),
        ({"text": SAME, "code": "a = 0\n" * 10 + "a"}, "gelu has 11 lines of code; 10 are allowed"),
        ({"text": SAME, "code": "words = x\nwords"}, "gelu gives words another value"),
        ({"tag": "gellu"}, "the tag gellu is neither a role nor an entry; did you mean gelu?"),
        ({"tag": "softmax"}, "softmax is answered twice"),
        ({"tag": "dense"}, "dense is answered twice"),
    ],
)
def test_each_breach_is_told_with_its_entry(notebook, change, said):
    told = notebook("gelu", **change)
    assert any(trouble.startswith(said) for trouble in told), told


def test_what_is_kept_is_not_told(notebook):
    assert not notebook("gelu", text=SAME)


def test_entries_lead_to_each_other_and_are_complete():
    with pytest.raises(RosettaError, match="softmax says see nothing, which is no entry"):
        parse(entries.Entries, _with("softmax", see='["nothing"]'), "entries.toml")
    text = (TASK.folder / "entries.toml").read_text().replace('example = "stop-gradient"', 'example = "nothing"')
    with pytest.raises(RosettaError, match="example is nothing, which is no entry"):
        parse(entries.Entries, text, "entries.toml")
    with pytest.raises(RosettaError, match="groups"):
        parse(entries.Entries, _with("softmax", group='"Arrays"'), "entries.toml")
    assert all(entry.definition.endswith(".") and entry.aliases for entry in ENTRIES.values())


def _with(key: str, **changed: str) -> str:
    lines, inside = [], False
    for line in (TASK.folder / "entries.toml").read_text().splitlines():
        inside = line == f"[entries.{key}]" if line.startswith("[") else inside
        name = line.partition(" = ")[0]
        lines.append(f"{name} = {changed[name]}" if inside and name in changed else line)
    return "\n".join(lines)


@pytest.mark.parametrize("framework", ROWS)
def test_every_question_is_answered_or_said_to_have_no_answer(framework):
    answered, facts = entries.answers(ROWS[framework].notebook, TASK), ROWS[framework].facts
    assert not set(answered) & set(facts.lacks) and set(facts.lacks) <= set(ENTRIES)
    assert set(ENTRIES) == {*answered, *facts.lacks}
    assert len(facts.lacks) <= 3


# ---- What cells end with


class Tensor(SimpleNamespace):
    """As PyTorch's: NumPy's only when it is on the CPU and has no history."""

    def __array__(self, *arguments, **options):
        raise TypeError("it requires a gradient")


def test_values_of_frameworks_become_arrays():
    inside = np.arange(3.0)
    plain = Tensor(numpy=lambda: inside)
    on_gpu = Tensor(detach=lambda: Tensor(cpu=lambda: plain))
    for value in (on_gpu, Tensor(asnumpy=lambda: inside), SimpleNamespace(array=inside), inside, [0.0, 1.0, 2.0]):
        assert np.array_equal(answers.as_array(value), inside)
    assert answers.as_array(True).dtype == bool and answers.as_array("float64") == "float64"


def test_several_values_of_a_cell_are_kept_in_their_order():
    kept = answers.by_cell({"a, b": (np.zeros(2), 1), "[c]": [np.ones(1)], "d": 2.0})
    name = answers.named("a, b")
    assert set(kept) == {f"{name}.0", f"{name}.1", f"{answers.named('[c]')}.0", answers.named("d")}
    assert kept[f"{name}.1"] == 1


def test_a_log_outside_of_a_notebook_says_so():
    with pytest.raises(RuntimeError, match="there is no notebook here"):
        answers.AnswerLog()


# ---- API names

ENOUGH = 0.9  # of the API names in the notebooks of other tasks lead to an entry


def test_names_are_those_of_the_framework():
    setup = "import numpy as np\nimport torch\nfrom torch import nn\nfrom common.params.dictionary import x\nimport os"
    code = "layer = nn.Linear(3, 2)\ny = layer(torch.tensor(x)).square().tolist()\nos.path.join(np.ones(3), layer.weight)\nx.size\n"
    found = [("nn.Linear", 0), ("square", 1), ("tolist", 1), ("torch.tensor", 1), ("weight", 2)]
    assert sorted(entries.names(code, [setup])) == found


def uses(framework: str):
    """The API names of a framework's other notebooks, each with whether its line is marked with an entry,
    or with what only that task has.

    Names that ``common`` has, too, are left out: they may be of NumPy or of the task's own objects.
    """
    shared = {
        node.attr
        for file in checkout.common.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Attribute)
    }
    for task in KNOWN.tasks.values():
        notebook = task.folder / f"{framework}.ipynb"
        if task is TASK or not notebook.is_file():
            continue
        program = sections.notebook(notebook, task.kind)
        codes = [section.code for section in program.sections]
        made = set().union(*(entries._made(ast.parse(code)) for code in codes))
        for section in program.sections:
            shown = [sections.shown(section, one) for one in section.concepts]
            for name, line in entries.names(section.code, codes):
                if "." in name or name not in shared | made:
                    yield name, any(lines[line] for lines in shown)


def test_names_in_other_tasks_lead_to_an_entry():
    aliases = {entries.short(alias) for key, entry in ENTRIES.items() for alias in (key, *entry.aliases)}
    found = Counter()
    for framework, row in ROWS.items():
        words = {word for answer in entries.answers(row.notebook, TASK).values() for word in WORD.findall(answer.code)}
        words = {entries.short(word) for word in words} | aliases
        for name, marked in uses(framework):
            found[entries.short(name) in words or marked] += 1
    share = found[True] / found.total()
    assert found.total() > 2000 and share > ENOUGH, f"{share:.1%} of {found.total()} names"


def test_every_answer_has_a_whole_statement_that_tells_it():
    for framework, row in ROWS.items():
        answers = entries.answers(row.notebook, TASK)
        for key, statement in entries.statements(answers, entries.load(TASK.folder)).items():
            rest = {":": " pass", "@": "\ndef f(): pass"}
            whole = statement + rest.get(statement[-1], "") + rest.get(statement[0], "")
            assert "\n" not in statement and ast.parse(whole).body, f"{framework}, {key}: {statement}"


def test_coming_from_pytorch_is_a_choice_of_entries():
    """The first text of each notebook leads to seven answers of its framework."""
    headings = {entry.question.replace(" ", "-"): key for key, entry in ENTRIES.items()}
    chosen = set()
    for task in KNOWN.tasks.values():
        for notebook in task.folder.glob("*.ipynb"):
            intro, _ = cut(notebook, task.kind)
            asked = re.findall(r"^\| \[[\w ]+\]\(\.\./dictionary/(\w+)\.ipynb#(\S+)\) \|", intro, re.MULTILINE)
            if task is not TASK and "DEVICES" not in task.constants():  # whose table is of devices
                assert len(asked) == 7 and {framework for framework, _ in asked} == {notebook.stem}, notebook
                chosen.add(tuple(headings[heading] for _, heading in asked))
    assert len(chosen) == 1
