"""Requests all files at once by HTTP/2 alone: client.py ORIGIN FOLDER"""

import asyncio
import pathlib
import sys

import httpx


async def main(origin: str, folder: pathlib.Path) -> None:
    limits = httpx.Limits(max_connections=1)
    async with httpx.AsyncClient(http1=False, http2=True, verify=False, trust_env=False, limits=limits, timeout=30) as client:

        async def get(name: str) -> None:
            response = await client.get(f"{origin}/{name}")
            assert (response.status_code, response.http_version) == (200, "HTTP/2"), response
            (folder / name).write_bytes(response.content)

        names = [f"{number}.txt" for number in range(40)] + ["large.bin"]
        await asyncio.gather(*map(get, names))


asyncio.run(main(sys.argv[1], pathlib.Path(sys.argv[2])))
