"""Requests a second, CPU time a request and memory of the endpoint client, against a server that answers after 100 ms.

The server is another process of this machine, written here: it reads a request, waits, and answers. What is reported
are ratios to what is possible (in flight / delay) and our own CPU time and memory.

    python benchmarks/endpoint_speed.py --requests 20000
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from lm_audit.models import load_model
from lm_audit.models.endpoint.settings import EndpointSettings

DELAY_S = 0.1
BATCH = 1000


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


def measure(requests: int, in_flight: int) -> None:
    """Ask in batches of a thousand and print what each cost."""
    with subprocess.Popen([sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            port = int(server.stdout.readline())
            with tempfile.TemporaryDirectory() as folder:
                settings = EndpointSettings(concurrency=in_flight, folder=Path(folder), repeat_checks=0)
                model = load_model(f"openai:slow@http://127.0.0.1:{port}/v1", endpoint=settings)
                possible = in_flight / DELAY_S
                model.generate(["warm up"] * in_flight, max_new_tokens=8, chat=True, temperature=1.0)
                print("requests   of possible   of plain sockets   CPU ms a request   resident MiB")
                plain = asyncio.run(_plain_rate(port, in_flight))
                for done in range(0, requests, BATCH):
                    prompts = [f"question number {done + k}, of a length that is usual " * 4 for k in range(BATCH)]
                    cpu, begun = _cpu_s(), time.perf_counter()
                    model.generate(prompts, max_new_tokens=8, chat=True)
                    rate = BATCH / (time.perf_counter() - begun)
                    spent = 1000 * (_cpu_s() - cpu) / BATCH
                    gc.collect()
                    if done % (5 * BATCH) == 0:
                        plain = asyncio.run(_plain_rate(port, in_flight))
                    shares = f"{rate / possible:11.1%}   {rate / plain:16.1%}"
                    print(f"{done + BATCH:8d}   {shares}   {spent:16.2f}   {_resident_mib():12.1f}", flush=True)
        finally:
            server.terminate()


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
