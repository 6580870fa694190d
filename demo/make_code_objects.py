"""Write the demo's code objects: ELF files that hold the table's symbols and no machine code.

usage: python demo/make_code_objects.py
"""

from __future__ import annotations

import csv
import struct
from pathlib import Path

HSA = Path(__file__).resolve().parent / "serving" / "hsa"
EM_AMDGPU = 224
HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB = 1, 2, 3
GLOBAL_FUNC, GLOBAL_OBJECT = 0x12, 0x11


def code_object(kernel: str) -> bytes:
    """Give an ELF object with the symbols `kernel` (code) and `kernel.kd` (its descriptor)."""
    strings = b"\0" + kernel.encode() + b"\0" + kernel.encode() + b".kd\0"
    symbols = (
        SYMBOL.pack(0, 0, 0, 0, 0, 0)
        + SYMBOL.pack(1, GLOBAL_FUNC, 0, 1, 0, 4)
        + SYMBOL.pack(2 + len(kernel), GLOBAL_OBJECT, 0, 1, 4, 64)
    )
    text = bytes(68)
    names = b"\0.text\0.symtab\0.strtab\0.shstrtab\0"
    chunks = [text, symbols, strings, names]
    offsets = []
    position = HEADER.size
    for chunk in chunks:
        offsets.append(position)
        position += -(-len(chunk) // 8) * 8
    body = b"".join(chunk.ljust(-(-len(chunk) // 8) * 8, b"\0") for chunk in chunks)
    sections = (
        bytes(SECTION.size)
        + SECTION.pack(1, SHT_PROGBITS, 6, 0, offsets[0], len(text), 0, 0, 8, 0)
        + SECTION.pack(7, SHT_SYMTAB, 0, 0, offsets[1], len(symbols), 3, 1, 8, SYMBOL.size)
        + SECTION.pack(15, SHT_STRTAB, 0, 0, offsets[2], len(strings), 0, 0, 1, 0)
        + SECTION.pack(23, SHT_STRTAB, 0, 0, offsets[3], len(names), 0, 0, 1, 0)
    )
    identity = b"\x7fELF\x02\x01\x01\x40" + bytes(8)
    header = HEADER.pack(
        identity, 3, EM_AMDGPU, 1, 0, 0, position, 0x54C, HEADER.size, 0, 0, SECTION.size, 5, 4
    )
    return header + body + sections


def main() -> None:
    """Write one code object for each row of each table."""
    for table in sorted(HSA.glob("*/*/*_asm.csv")):
        with table.open(newline="") as rows:
            for row in csv.DictReader(rows):
                (table.parent / row["co_name"]).write_bytes(code_object(row["knl_name"]))


if __name__ == "__main__":
    main()
