"""The sentence of a notebook's own text that explains how it expresses a concept: the one that names what the lines name."""

import re

from rosetta.site.programs import Program

SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*\[])")
TARGET = re.compile(r"\]\([^)]*\)")  # of a link
QUOTED = re.compile(r"`([^`]+)`")
NAME = re.compile(r"[A-Za-z_]\w{2,}")
PROPER = re.compile(r"(?:(?<=[a-z,] )\(?|^)([A-Z]\w{3,})")  # a capital: Glorot, Nesterov, NHWC
COMMON = {"given", "what", "when", "where", "which", "from"}  # words that may begin a text
STEM = 6  # letters that the forms of a word share
LEAST = 1.5  # a sentence that fits: it has the concept's own word, or a name that few steps have


def sentence(program: Program, concept: str, about: str) -> str | None:
    """Markdown; None where no sentence fits. about: what is said of the concept for all frameworks."""
    topics = {concept[:STEM].lower(), *(word.lower() for word in PROPER.findall(about))} - COMMON
    used = [set(NAME.findall(section.code)) for section in program.sections]
    best, most = None, 0.0
    for section in program.sections:
        texts = section.concepts.get(concept, [])
        lines = [line for line in section.code.split("\n") if any(text in line for text in texts)]
        marked, beside = (set(NAME.findall("\n".join(some))) for some in (texts, lines))
        for text in SENTENCE.split(" ".join(section.note.split())) if texts else ():
            plain = TARGET.sub("]", text)
            quoted = {name for part in QUOTED.findall(plain) for name in NAME.findall(part)}
            score = sum(LEAST for topic in topics if topic in plain.lower())
            for name in quoted & beside:
                places = sum(name in one for one in used)
                if places <= 2:  # one that most steps have, such as the library's, explains none
                    score += (2 if name in marked else 1) / places
            if score >= LEAST and score > most:
                best, most = text, score
    return best
