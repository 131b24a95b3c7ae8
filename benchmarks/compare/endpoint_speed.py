"""Requests a second, CPU time a request and memory of the endpoint client, against a server that answers after 100 ms.

The server is another process of this machine, written here: it reads a request, waits, and answers. What is reported
are ratios to what is possible (in flight / delay), and to what three barer clients get of the same machine in the same
minute: the official client's plain method, its HTTP library alone, and sockets that do nothing else. ``unspread`` is
this client without the pauses that spread its requests out.

    python benchmarks/compare/endpoint_speed.py --requests 20000
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "harness"))

from lm_audit.models import load_model
from lm_audit.models.endpoint.client.pacing import Pacer
from lm_audit.models.endpoint.settings import EndpointSettings

DELAY_S = 0.1
BATCH = 320


async def _client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One connection: request after request, each answered after the delay."""
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            fields = [line.partition(":") for line in head.split("\r\n")]
            length = next((int(value) for name, _, value in fields if name.lower() == "content-length"), 0)
            body = json.loads(await reader.readexactly(length)) if length else {}
            if head.startswith("POST"):
                await asyncio.sleep(DELAY_S)
            status, said = _answer(head.split(" ")[1], body)
            raw = json.dumps(said).encode()
            begin = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(raw)}\r\n\r\n"
            writer.write(begin.encode() + raw)
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


def _answer(path: str, body: dict[str, object]) -> tuple[str, object]:
    usage = {"prompt_tokens": 40, "completion_tokens": 8, "total_tokens": 48}
    if path.endswith("/models"):
        return "200 OK", {"object": "list", "data": [{"id": "slow"}]}
    if path.endswith("/chat/completions"):
        choice = {"index": 0, "message": {"role": "assistant", "content": "a short answer"}, "finish_reason": "stop"}
    elif path.endswith("/completions"):
        choice = {"index": 0, "text": "a short answer", "finish_reason": "stop"}
    else:
        return "404 Not Found", {"error": {"message": "no such route"}}
    return "200 OK", {"id": "x", "model": "slow", "choices": [choice], "usage": usage}


async def _serve() -> None:
    server = await asyncio.start_server(_client, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


async def _plain_rate(port: int, in_flight: int, rounds: int = 30) -> float:
    """Requests a second that this machine gets out of the server now, by sockets that do nothing else."""

    async def asker() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in range(rounds):
            writer.write(b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}")
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            await reader.readexactly(int(head.rpartition("content-length:")[2]))
        writer.close()

    begun = time.perf_counter()
    await asyncio.gather(*(asker() for _ in range(in_flight)))
    return in_flight * rounds / (time.perf_counter() - begun)


def _resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 2**20


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def _with_official(port: int, in_flight: int, prompts: list[str]) -> None:
    """The same questions by the official client's plain method, by as many senders, nothing kept or checked."""
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient

    http = DefaultAsyncHttpxClient(trust_env=False)
    async with AsyncOpenAI(api_key="none", base_url=f"http://127.0.0.1:{port}/v1", http_client=http) as client:
        left = iter(prompts)

        async def sender() -> None:
            for prompt in left:
                asked: Any = [{"role": "user", "content": prompt}]
                await client.chat.completions.create(model="slow", messages=asked, max_tokens=8, temperature=0)

        await asyncio.gather(*(sender() for _ in range(in_flight)))


async def _with_http(port: int, in_flight: int, prompts: list[str]) -> None:
    """The same by the HTTP library underneath alone."""
    import httpx2

    url = f"http://127.0.0.1:{port}/v1/chat/completions"
    async with httpx2.AsyncClient(trust_env=False) as client:
        left = iter(prompts)

        async def sender() -> None:
            for prompt in left:
                asked = [{"role": "user", "content": prompt}]
                reply = await client.post(url, json={"model": "slow", "messages": asked, "max_tokens": 8})
                reply.json()

        await asyncio.gather(*(sender() for _ in range(in_flight)))


def measure(requests: int, in_flight: int) -> None:
    """Ask in batches, each beside the same number by the official client, by its HTTP library and by plain sockets.

    A machine that is busy slows all four; medians of the ratios of one round to the next say what this client costs.
    """
    with subprocess.Popen([sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            port = int(server.stdout.readline())
            with tempfile.TemporaryDirectory() as folder:
                settings = EndpointSettings(concurrency=in_flight, folder=Path(folder), repeat_checks=0)
                model = load_model(f"openai:slow@http://127.0.0.1:{port}/v1", endpoint=settings)
                model.generate(["warm up"] * in_flight, max_new_tokens=8, chat=True, temperature=1.0)
                _rounds(model, port, requests, in_flight)
        finally:
            server.terminate()


def _unspread(model: Any, prompts: list[str]) -> None:
    """Other questions, since the answers to these are kept, with no pause between two."""
    kept, model.client._pacer = model.client._pacer, Pacer(10**9)
    try:
        model.generate([f"again: {prompt}" for prompt in prompts], max_new_tokens=8, chat=True)
    finally:
        model.client._pacer = kept


def _rounds(model: Any, port: int, requests: int, in_flight: int) -> None:
    ways: dict[str, Callable[[list[str]], object]] = {
        "lm_audit": lambda prompts: model.generate(prompts, max_new_tokens=8, chat=True),
        "unspread": lambda prompts: _unspread(model, prompts),
        "official": lambda prompts: asyncio.run(_with_official(port, in_flight, prompts)),
        "http": lambda prompts: asyncio.run(_with_http(port, in_flight, prompts)),
        "sockets": lambda prompts: asyncio.run(_plain_rate(port, in_flight, len(prompts) // in_flight)),
    }
    rates: dict[str, list[float]] = {name: [] for name in ways}
    cpu: dict[str, list[float]] = {name: [] for name in ways}
    possible, every = in_flight / DELAY_S, max(1, requests // BATCH // 20)
    print("requests   of possible: " + "  ".join(f"{name:>8}" for name in ways) + "   CPU ms a request: the same   MiB")
    for done in range(0, requests, BATCH):
        prompts = [f"question number {done + k}, of a length that is usual " * 4 for k in range(BATCH)]
        for name, way in ways.items():
            # The others are asked a part of it: what counts is what each gets of the machine at the time.
            some = prompts if name == "lm_audit" else prompts[: BATCH // 2]
            spent, begun = _cpu_s(), time.perf_counter()
            way(some)
            rates[name].append(len(some) / (time.perf_counter() - begun))
            cpu[name].append(1000 * (_cpu_s() - spent) / len(some))
        gc.collect()
        if done // BATCH % every == 0:
            shares = "  ".join(f"{found[-1] / possible:8.1%}" for found in rates.values())
            costs = "  ".join(f"{found[-1]:5.2f}" for found in cpu.values())
            print(f"{done + BATCH:8d}                {shares}   {costs}   {_resident_mib():6.1f}", flush=True)
    for name in ways:
        share = statistics.median(ours / theirs for ours, theirs in zip(rates["lm_audit"], rates[name], strict=True))
        cost = statistics.median(ours / theirs for ours, theirs in zip(cpu["lm_audit"], cpu[name], strict=True))
        print(
            f"{name}: median {statistics.median(rates[name]) / possible:.1%} of possible, best "
            f"{max(rates[name]) / possible:.1%}, {statistics.median(cpu[name]):.2f} ms of CPU a request; "
            f"lm_audit gets {share:.2f} of its rate for {cost:.2f} of its CPU"
        )


def main() -> None:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--in-flight", type=int, default=16)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        asyncio.run(_serve())
    else:
        measure(arguments.requests, arguments.in_flight)


if __name__ == "__main__":
    main()
