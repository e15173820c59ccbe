#!/usr/bin/env python3
"""The arrows between the rooms: which room's headers each room may include (ARCHITECTURE.md).

usage: rooms.py ROOT          every include of ROOT against the arrows; exit 1 with a line for each that is wrong
       rooms.py --self-test   proves on small trees that each rule can fail
"""
import pathlib
import re
import sys
import tempfile

# A room (the longest prefix of a file's folder counts) -> the rooms whose headers it may include, besides its own.
# A folder below a room belongs to the room unless it is named here itself.
DAEMON_SEES = {"vocabulary", "policies", "protocol", "platform", "config", "engine/adapters", "engine/tokenizer"}
ROOMS = {
    "vocabulary": set(),
    "policies": {"vocabulary"},
    "protocol": {"vocabulary"},
    "platform": {"vocabulary", "protocol"},
    "config": {"vocabulary"},
    "kernels": {"vocabulary"},
    "engine/safetensors": {"vocabulary", "kernels", "platform"},
    "engine/tokenizer": {"vocabulary", "engine/safetensors"},
    "engine/adapters": {"vocabulary"},
    "engine/native": {"vocabulary", "kernels", "platform", "engine/safetensors", "engine/tokenizer"},
    "engine/maker": {"vocabulary", "kernels", "platform", "engine/safetensors", "engine/tokenizer", "engine/native"},
    "agent": DAEMON_SEES | {"agent/model", "agent/node", "agent/stage", "agent/keeper", "engine/safetensors"},
    # The proof of a model directory and the readers of a node: also for what works without a daemon.
    "agent/model": {"vocabulary", "policies", "protocol", "platform", "kernels", "engine/safetensors"},
    "agent/node": {"vocabulary", "policies", "protocol", "platform", "kernels"},
    "agent/keeper": {"vocabulary", "platform", "protocol"},
    "agent/stage": DAEMON_SEES | {"agent/keeper", "agent/node"},
    # The leader reads the manifest that it hands out; nothing else of an agent's.
    "daemon": DAEMON_SEES | {"agent/model"},
    "cli": DAEMON_SEES | {"agent/model", "agent/node", "engine/maker"},
}

# Libraries that rooms do without: the pure ones, and the keeper, which is small and static.
LIBRARIES = {
    "Boost": re.compile(r"boost/"),
    "OpenSSL": re.compile(r"openssl/"),
    "SQLite": re.compile(r"sqlite3\.h"),
    "a thread": re.compile(r"(thread|mutex|condition_variable|future|atomic|pthread\.h)$"),
    "the system": re.compile(r"(sys/|unistd\.h|fcntl\.h|time\.h|ctime$|fstream$|filesystem$|iostream$)"),
}
WITHOUT = {
    "vocabulary": {"Boost", "OpenSSL", "SQLite", "a thread", "the system"},
    "policies": {"Boost", "OpenSSL", "SQLite", "a thread", "the system"},
    "protocol": {"Boost", "OpenSSL", "SQLite", "a thread", "the system"},
    "config": {"Boost", "OpenSSL", "SQLite", "a thread"},
    "kernels": {"Boost", "OpenSSL", "SQLite"},
    "agent/keeper": {"Boost", "OpenSSL", "SQLite"},
}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)

# g++ 12 destroys an aggregate with strings twice when it is made inside a co_await expression. By their names the
# types of this project that have a constructor or no string in them.
SAFE_TYPES = {"Frame", "Peer", "Bytes", "Tokens", "Epoch", "Term", "Rank", "Duration", "Instant", "WallTime", "Done"}
AWAIT = re.compile(r"\bco_await\b[^;]*;")
AGGREGATE = re.compile(r"\b([A-Z]\w*)\s*\{")

TOP = sorted({room.split("/")[0] for room in ROOMS})


def room_of(path):
    """The room of a file or header path: its longest prefix that is one; None: no room."""
    parts = path.split("/")[:-1]
    while parts:
        name = "/".join(parts)
        if name in ROOMS:
            return name
        parts.pop()
    return None


def without_comments(text):
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)


def check_file(path, text):
    """The wrong lines of one file: path is relative to the root."""
    wrong = []
    room = room_of(path)
    if room is None:
        return [f"{path}: in no room; name it in tests/unit/rooms/rooms.py"]
    for match in INCLUDE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        kind, header = match.groups()
        if kind == "<" or "/" not in header:
            for library in WITHOUT.get(room, ()):
                if LIBRARIES[library].match(header):
                    wrong.append(f"{path}:{line}: {room} does without {library}, and includes {header}")
            continue
        if header.split("/")[0] not in TOP:
            continue
        target = room_of(header)
        if target is None:
            wrong.append(f"{path}:{line}: {header} is in no room")
        elif target != room and target not in ROOMS[room]:
            seen = ", ".join(sorted(ROOMS[room])) or "no other room"
            wrong.append(f"{path}:{line}: {room} may not include {header} of {target}; it sees {seen}")
    plain = without_comments(text)
    for match in AWAIT.finditer(plain):
        for aggregate in AGGREGATE.finditer(match.group()):
            if aggregate.group(1) in SAFE_TYPES:
                continue
            wrong.append(f"{path}: make {aggregate.group(1)}{{...}} in a variable before co_await: g++ 12 destroys it "
                         f"twice in \"{' '.join(match.group().split())[:80]}\"")
    return wrong


def check(root):
    wrong = []
    for top in TOP:
        for path in sorted((root / top).rglob("*")):
            if path.suffix in {".cpp", ".hpp", ".c", ".h", ".inc", ".cu", ".def"}:
                wrong += check_file(path.relative_to(root).as_posix(), path.read_text(errors="replace"))
    return wrong


def cycles():
    """Rooms that see one another, directly or not."""
    found = []
    for start in ROOMS:
        reached, todo = set(), list(ROOMS[start])
        while todo:
            room = todo.pop()
            if room not in reached:
                reached.add(room)
                todo += ROOMS[room]
        if start in reached:
            found.append(start)
    return found


SELF_TEST = [
    # path, text, a part of the line that it must give; none: it must give none
    ("policies/a.cpp", '#include "vocabulary/units.hpp"\n#include "policies/b.hpp"\n#include <vector>\n', None),
    ("policies/a.cpp", '\n#include "platform/clock.hpp"\n', "policies/a.cpp:2: policies may not include platform/clock"),
    ("policies/a.cpp", "#include <boost/asio.hpp>\n", "policies does without Boost"),
    ("policies/a.cpp", "#include <thread>\n", "policies does without a thread"),
    ("policies/a.hpp", "#include <sys/socket.h>\n", "policies does without the system"),
    ("vocabulary/a.hpp", '#include "protocol/codec.hpp"\n', "vocabulary may not include"),
    ("protocol/a.hpp", '#include "platform/files.hpp"\n', "protocol may not include"),
    ("config/a.cpp", '#include "platform/files.hpp"\n', "config may not include"),
    ("platform/a.cpp", '#include "config/agent.hpp"\n', "platform may not include"),
    ("kernels/cpu/a.cpp", '#include "engine/native/model.hpp"\n', "kernels may not include"),
    ("engine/native/service/a.cpp", '#include "platform/clock.hpp"\n#include "kernels/cpu/crew.hpp"\n', None),
    ("engine/native/a.cpp", '#include "agent/model/manifest.hpp"\n', "engine/native may not include"),
    ("agent/a.cpp", '#include "engine/native/model.hpp"\n', "agent may not include"),
    ("agent/stage/a.cpp", '#include "engine/adapters/adapter.hpp"\n', None),
    ("agent/keeper/a.cpp", "#include <boost/asio.hpp>\n", "agent/keeper does without Boost"),
    ("agent/model/a.cpp", '#include "agent/stage/stage.hpp"\n', "agent/model may not include"),
    ("daemon/cluster/a.cpp", '#include "agent/model/manifest.hpp"\n', None),
    ("daemon/cluster/a.cpp", '#include "agent/stage/stage.hpp"\n', "daemon may not include"),
    ("daemon/a.cpp", '  #  include "cli/table.hpp"\n', "daemon may not include"),
    ("cli/a.cpp", '#include "agent/node/facts.hpp"\n', None),
    ("cli/a.cpp", '#include "daemon/store/store.hpp"\n', "cli may not include"),
    ("engine/a.cpp", "", "engine/a.cpp: in no room"),
    ("daemon/a.cpp", "co_await tell(\n  Error{what, on});\n", "make Error{...} in a variable before co_await"),
    ("daemon/a.cpp", "co_await channel->write(Frame{kind, text}, Duration{1});\n", None),
    ("daemon/a.cpp", "// co_await tell(Error{a});\n", None),
]


def self_test():
    failed = [f"the arrows lead back to {room}" for room in cycles()]
    for path, text, expected in SELF_TEST:
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / path
            file.parent.mkdir(parents=True)
            file.write_text(text)
            wrong = check(pathlib.Path(folder))
        good = not wrong if expected is None else len(wrong) == 1 and expected in wrong[0]
        if not good:
            failed.append(f"{path}: {text!r}: expected {expected!r}, got {wrong}")
    return failed


def main(arguments):
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    wrong = self_test() if arguments[0] == "--self-test" else check(pathlib.Path(arguments[0]))
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
