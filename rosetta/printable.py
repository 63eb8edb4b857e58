"""Text without what a terminal obeys: of a notebook or a record nothing but its words is shown."""

import re

# A whole control sequence (ECMA-48): a string up to its end (titles, links), CSI (colours, the cursor), or another escape
SEQUENCE = re.compile(
    r"(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|\x1b[ -/]*[0-~]"
)
CONTROLS = [
    *range(0x20),
    *range(0x7F, 0xA0),
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
]  # C0, C1, text turned around
HARMLESS = {ord(character): character for character in "\n\t"}
NO_CONTROLS = dict.fromkeys(CONTROLS) | HARMLESS  # as ``str.translate`` takes it


def printable(text: str) -> str:
    """The text without control sequences and control characters; lines stay, and what a carriage return parts."""
    text = SEQUENCE.sub("", text.replace("\r\n", "\n"))
    return text.replace("\r", " ").translate(NO_CONTROLS)
