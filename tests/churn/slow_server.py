#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""slow_server.py PORT SECONDS ADDRESS...: reads to the end of a request, then sends its answer for SECONDS, 5 KiB a second."""

import asyncio
import sys

PIECE = bytes(range(256)) * 4


async def answer(reader, writer):
    await reader.read(-1)
    for _ in range(5 * int(sys.argv[2])):
        writer.write(PIECE)
        await writer.drain()
        await asyncio.sleep(0.2)
    writer.close()


async def main():
    await asyncio.start_server(answer, sys.argv[3:], int(sys.argv[1]))
    await asyncio.Event().wait()


asyncio.run(main())
