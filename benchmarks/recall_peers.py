"""How long does recall take beside other memory libraries, with the same texts and vectors?

    python benchmarks/recall_peers.py [--sizes 1000 10000] [--peers NAME ...] [--environments FOLDER] [--out FILE]

One user's memories, ten results, the query's vector at hand, no model and no network. Each library runs in an
environment of its own, made with uv from pinned versions and kept in FOLDER for the next run; the scripts that run
there are in `benchmarks/peers`, and each says how it fills its library. Lines of an earlier FILE that this run does
not measure stay, so sizes and libraries can be measured one after the other. Nothing but uv is needed here.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PROCESSES = 3
NUMPY = "numpy==2.4.6"
ENVIRONMENTS = {
    "afterword": ["--reinstall-package", "afterword", f"afterword[local] @ {HERE.parent.as_uri()}"],
    "mem0": [NUMPY, "mem0ai==2.2.1", "qdrant-client==1.20.0", "faiss-cpu==1.15.1"],
    "langmem": [
        NUMPY,
        "langmem==0.0.30",
        "langgraph-checkpoint-sqlite==3.1.2",
        "sqlite-vec==0.1.9",
        "pysqlite3-binary==0.5.4.post2",
    ],
    "chroma": [NUMPY, "autogen-ext[chromadb]==0.7.5", "chromadb==1.5.9"],
}

QUIET = {
    **{"MEM0_TELEMETRY": "False", "ANONYMIZED_TELEMETRY": "False", "LANGSMITH_TRACING": "false"},
    **{"HF_HUB_OFFLINE": "1", "OPENAI_API_KEY": "unused"},
}
"""What keeps the libraries from telling and fetching; mem0 wants a key for the model that it does not ask here."""


@dataclass(frozen=True)
class Peer:
    """A line of the table: its environment, its script and what the script is told besides."""

    title: str
    environment: str
    script: str
    variant: tuple[str, ...] = ()


PEERS = {
    "floor": Peer("floor: numpy alone", "afterword", "with_numpy.py"),
    "afterword": Peer("afterword, words and vectors, SQLite", "afterword", "with_afterword.py"),
    "mem0-faiss": Peer("mem0, FAISS", "mem0", "with_mem0.py", ("faiss",)),
    "mem0-qdrant": Peer("mem0, Qdrant (local)", "mem0", "with_mem0.py", ("qdrant",)),
    "langmem": Peer("LangMem, SQLite", "langmem", "with_langmem.py"),
    "chroma": Peer("`ChromaDBVectorMemory` with a user filter", "chroma", "with_chroma.py"),
}

HEAD = """# Speed of recall, compared with other memory libraries

Command: `benchmarks/recall_peers.py`. Times are in milliseconds, for ten results from the memories of one user. All
libraries have the same invented texts and random vectors of 256 numbers. No model, no network, telemetry off. Threads
of numpy and FAISS: {threads}.

- Warm: {processes} processes together, each after 20 queries.
- CPU: the processor time of a warm query, of all threads.
- Cold: opening and the first query in a new process that has already loaded the library's code with a small store; the
  median of {processes}.
- Load: how many processes ran or waited for one of {cores} processors when the measurement began. The machine is
  shared, so compare the ratios, not the milliseconds.

| library | versions | facts | warm p50 | warm p95 | CPU p50 | cold | nearest ten | load |
|---|---|---|---|---|---|---|---|---|
"""

NOTES = """
- **The same work?** "Nearest ten" is the share of the ten nearest vectors that the answers hold. afterword ranks by
  words and vectors together, so its ten are different. All other lines rank by vectors alone.
- **Embedder**: each library's own kind of embedder is replaced by one that already has the vectors.
- **mem0**: `Memory.search(top_k=10, filters={"user_id": ...})`. A model is configured but never asked. mem0's ranking
  by words and entities is off, because it needs a spaCy model and a fastembed file from a hub. Opening also creates two
  OpenAI clients. With FAISS the user filter is applied to the nearest 120 memories of all users, so those of others
  can leave no room for a user's. Qdrant runs in its local mode, which is written in Python, not as a server.
- **LangMem**: `create_search_memory_tool` over LangGraph's `SqliteStore` (sqlite-vec); the namespace is the user's.
- **`ChromaDBVectorMemory`**: a persistent client, `query(..., where={"user_id": ...})`. Its index (HNSW) is
  approximate, and random vectors are the hardest for it.
- **Filling** goes below a library's `add` where that asks a model or takes one memory at a time; each script in
  `benchmarks/peers` says how.
- **Floor**: numpy's product of the query with all vectors, and the best ten.
"""


def environment(name: str, folder: Path, uv: str) -> Path:
    """Return the Python of the environment, made or brought up to date."""
    python = folder / name / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not python.exists():
        subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(folder / name)], check=True)
    subprocess.run([uv, "pip", "install", "--quiet", "--python", str(python), *ENVIRONMENTS[name]], check=True)
    return python


def run(python: Path, script: str, *arguments: object, home: Path, options: argparse.Namespace) -> str:
    """Run a script of `peers` and return what it printed; its home is a folder of this run."""
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "TMPDIR") if name in os.environ}
    command = [str(python), str(HERE / "peers" / script), *map(str, arguments)]
    variables = {**kept, **QUIET, "HOME": str(home), "PYTHONPATH": str(HERE)}
    variables |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), str(options.threads))
    done = subprocess.run(command, env=variables, cwd=home, capture_output=True, text=True, timeout=options.limit_s)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return done.stdout


def measured(peer: Peer, python: Path, made: Path, size: int, options: argparse.Namespace) -> str:
    """Return the line of one library at one size."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="recall-peers-", ignore_cleanup_errors=True) as name:
        asked = (Path(name), made, size, options.rounds or (100 if size <= 10_000 else 20), *peer.variant)
        home = Path(name)
        try:
            run(python, peer.script, "fill", *asked, home=home, options=options)
            told = [run(python, peer.script, "ask", *asked, home=home, options=options) for _ in range(PROCESSES)]
        except subprocess.TimeoutExpired as late:
            step = "filled" if "fill" in late.cmd else "asked"
            why = f"not measured: not {step} within {options.limit_s:.0f} s"
            return f"| {peer.title} | | {size:,} | {why} | - | - | - | - | {load:.1f} |"
    return _row(peer, size, [json.loads(lines.splitlines()[-1]) for lines in told], load)


def _row(peer: Peer, size: int, told: Sequence[dict[str, Any]], load: float) -> str:
    warm = sorted(one for each in told for one in each["warm_ms"])
    p50, p95 = statistics.median(warm), warm[min(len(warm) - 1, int(len(warm) * 0.95))]
    cpu = statistics.median(one for each in told for one in each["cpu_ms"])
    cold = "-" if "numpy" in peer.script else f"{statistics.median(each['cold_ms'] for each in told):.0f}"
    nearest = "-" if "afterword" in peer.script else f"{statistics.mean(each['nearest'] for each in told):.2f}"
    times = f"{p50:.2f} | {p95:.2f} | {cpu:.2f} | {cold}"
    return f"| {peer.title} | {told[0]['version']} | {size:,} | {times} | {nearest} | {load:.1f} |"


def _lines(file: Path | None) -> dict[tuple[int, str], str]:
    """Return the lines of an earlier run by size and title, as far as there still is such a library."""
    titles = [peer.title for peer in PEERS.values()]
    kept = file.read_text(encoding="utf-8").splitlines() if file and file.exists() else []
    cells = [(line, [cell.strip() for cell in line.strip("|").split("|")]) for line in kept if line.startswith("| ")]
    return {(int(each[2].replace(",", "")), each[0]): line for line, each in cells if each[0] in titles}


def _in_order(lines: dict[tuple[int, str], str]) -> Iterator[str]:
    titles = [peer.title for peer in PEERS.values()]
    return (lines[key] for key in sorted(lines, key=lambda key: (key[0], titles.index(key[1]))))


def _written(lines: dict[tuple[int, str], str], threads: int) -> str:
    head = HEAD.format(processes=PROCESSES, threads=threads, cores=os.cpu_count())
    return head + "\n".join(_in_order(lines)) + "\n" + NOTES


def main() -> None:
    """Run the benchmark, print each line when it is there, and write the table."""
    parser = argparse.ArgumentParser(description="How long does recall take beside other libraries?")
    parser.add_argument("--sizes", nargs="+", type=int, default=[1_000, 10_000])
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(PEERS))
    parser.add_argument("--rounds", type=int, help="queries of each of three processes (100; 20 above 10,000 facts)")
    parser.add_argument(
        "--threads", type=int, default=1, help="of numpy and FAISS: waiting for more takes long under load"
    )
    parser.add_argument("--limit-s", type=float, default=300, help="how long filling, or a process of asking, may take")
    parser.add_argument("--environments", type=Path, help="where environments are kept; a temporary folder by default")
    parser.add_argument("--out", type=Path, help="the Markdown file, for example benchmarks/recall_peers.md")
    options = parser.parse_args()
    uv = shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if uv is None:
        raise SystemExit("uv is needed to make the environments: pip install uv")
    lines = _lines(options.out)
    with tempfile.TemporaryDirectory(prefix="recall-peers-", ignore_cleanup_errors=True) as name:
        folder = options.environments or Path(name) / "environments"
        needed = {"afterword", *(PEERS[one].environment for one in options.peers)}
        pythons = {one: environment(one, folder, uv) for one in sorted(needed)}
        made = Path(name) / "made.npz"
        run(pythons["afterword"], "make.py", made, max(options.sizes), home=Path(name), options=options)
        for size in options.sizes:
            for peer in (PEERS[one] for one in options.peers):
                lines[size, peer.title] = measured(peer, pythons[peer.environment], made, size, options)
                print(lines[size, peer.title], flush=True)  # noqa: T201 - a long run tells what it has
                if options.out:
                    options.out.write_text(_written(lines, options.threads), encoding="utf-8")


if __name__ == "__main__":
    main()
