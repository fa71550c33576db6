#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""HTTP requests by the thousand, each remembered with its source port; run it in the client's namespace.

    http_load.py ADDRESS --requests N [--concurrency C]    N requests, a new connection each
    http_load.py ADDRESS --hold N [--concurrency C]        until standard input ends: N connections that stay open and
                                                           ask again and again, and beside them new ones (C at a time)

Prints one JSON object.  "requests": [source port, answer or null, error or null, start, end], times in seconds of
CLOCK_MONOTONIC; "held": {source port, answers: [[answer, time of the first], ...], requests, error, end}.
"""

import argparse
import asyncio
import json
import resource
import sys
import time


def request_bytes(address, keep):
    host = f"[{address}]" if ":" in address else address
    return (f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: {'keep-alive' if keep else 'close'}\r\n\r\n").encode()


async def answer(reader):
    """The body of one response, without its line end."""
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200 "):
        raise ValueError(head.split(b"\r\n", 1)[0].decode(errors="replace"))
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return (await reader.readexactly(int(line.split(b":")[1]))).decode().strip()
    raise ValueError("a response without a length")


def reason(error):
    return str(error) or type(error).__name__


async def ask(options, results):
    """One request on a connection of its own."""
    start, port, got, wrong, writer = time.monotonic(), 0, None, None, None
    try:
        async with asyncio.timeout(options.timeout):
            reader, writer = await asyncio.open_connection(options.address, options.port)
            port = writer.get_extra_info("sockname")[1]
            writer.write(request_bytes(options.address, False))
            got = await answer(reader)
    except (OSError, ValueError, TimeoutError, asyncio.IncompleteReadError) as error:
        wrong = reason(error)
    finally:
        if writer:
            writer.close()
    results.append([port, got, wrong, start, time.monotonic()])


async def hold(options, stop, held):
    """One connection that stays, asking until told to stop or until it fails."""
    entry = {"port": 0, "answers": [], "requests": 0, "error": None}
    held.append(entry)
    writer = None
    try:
        async with asyncio.timeout(options.timeout):
            reader, writer = await asyncio.open_connection(options.address, options.port)
        entry["port"] = writer.get_extra_info("sockname")[1]
        while not stop.is_set():
            async with asyncio.timeout(options.timeout):
                writer.write(request_bytes(options.address, True))
                got = await answer(reader)
            entry["requests"] += 1
            if not entry["answers"] or entry["answers"][-1][0] != got:
                entry["answers"].append([got, time.monotonic()])
            try:
                await asyncio.wait_for(stop.wait(), options.interval)
            except TimeoutError:
                pass
    except (OSError, ValueError, TimeoutError, asyncio.IncompleteReadError) as error:
        entry["error"] = reason(error)
    finally:
        entry["end"] = time.monotonic()
        if writer:
            writer.close()


async def end_of_input(stop):
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await reader.read()
    stop.set()


async def new_ones(options, stop, results, left):
    while not stop.is_set() and (left is None or left[0] > 0):
        if left:
            left[0] -= 1
        await ask(options, results)


async def main(options):
    stop, results, held = asyncio.Event(), [], []
    left = None if options.requests is None else [options.requests]
    workers = [new_ones(options, stop, results, left) for _ in range(options.concurrency)]
    if left is None:
        workers += [hold(options, stop, held) for _ in range(options.hold)] + [end_of_input(stop)]
    await asyncio.gather(*workers)
    json.dump({"requests": results, "held": held}, sys.stdout)


def parse():
    parser = argparse.ArgumentParser(description="HTTP load that remembers each source port")
    parser.add_argument("address")
    parser.add_argument("--port", type=int, default=80)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--requests", type=int)
    what.add_argument("--hold", type=int)
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--interval", type=float, default=0.2, help="seconds between the requests of a held connection")
    parser.add_argument("--timeout", type=float, default=8.0, help="seconds until a request counts as failed")
    return parser.parse_args()


if __name__ == "__main__":
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asyncio.run(main(parse()))
