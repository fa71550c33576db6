#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""slow_client.py PORT ADDRESS COUNT: COUNT half-closed downloads at once; prints the length of each, or what went wrong."""

import asyncio
import json
import sys

PIECE = bytes(range(256)) * 4


async def download():
    got = b""
    try:
        reader, writer = await asyncio.open_connection(sys.argv[2], int(sys.argv[1]))
        writer.write(b"please")
        writer.write_eof()
        while piece := await asyncio.wait_for(reader.read(65536), 20):
            got += piece
        writer.close()
    except (OSError, TimeoutError) as error:
        return repr(error)
    return len(got) if got == PIECE * (len(got) // len(PIECE)) else "wrong bytes"


async def main():
    print(json.dumps(await asyncio.gather(*(download() for _ in range(int(sys.argv[3]))))))


asyncio.run(main())
