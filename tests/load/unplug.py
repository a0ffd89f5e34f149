"""The programs of `unplug`: a load of four organizations, the check of what it was told, and a proxy to stop.

    unplug.py load ADDRESS HOME     uploads 64 KiB and reads it back, twice at once for each organization; a line for each
                                    whenever HOME/window changes; ends at the window `end`
    unplug.py check ADDRESS HOME    reads every file that HOME/acknowledged names
    unplug.py proxy PORT ADDRESS    passes TCP connections on
"""

import asyncio
import hashlib
import http.client
import json
import os
import pathlib
import sys
import threading
import time
import urllib.parse

ORGANIZATIONS = {"1": "LOCAL", "2": "cluster", "3": "disk", "4": "cluster, synced"}
BOUNDARY = "unplug-7c1f"


def request(connection, method, path, body=None, headers=None):
    connection.request(method, path, body, headers or {})
    reply = connection.getresponse()
    return reply.status, reply.getheader("location"), reply.read()


def read(connection, file_id):
    """Reads a file, where it is redirected to as well; returns status and bytes."""
    status, location, body = request(connection, "GET", f"/api/v1/files/{file_id}")
    if status not in (302, 307):
        return status, body
    url = urllib.parse.urlsplit(location)
    provider = http.client.HTTPConnection(url.netloc, timeout=10)
    status, _, body = request(provider, "GET", f"{url.path}?{url.query}")
    provider.close()
    return status, body


def form(organization, data):
    fields = {"organization_id": organization, "sub_system": "load"}
    parts = [
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in fields.items()
    ]
    parts.append(f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n\r\n')
    return "".join(parts).encode() + data + f"\r\n--{BOUNDARY}--\r\n".encode()


class Tally:
    def __init__(self, home):
        self.lock = threading.Lock()
        self.seconds = {organization: [] for organization in ORGANIZATIONS}
        self.failed = {organization: {} for organization in ORGANIZATIONS}
        self.acknowledged = open(home / "acknowledged", "a", buffering=1)

    def once(self, connection, organization):
        """Uploads and reads one file; returns what went wrong, if anything did."""
        data = os.urandom(64 << 10)
        headers = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
        status, _, body = request(connection, "POST", "/api/v1/files/upload", form(organization, data), headers)
        if status != 201:
            return f"upload {status}"
        file_id = json.loads(body)["file_id"]
        with self.lock:
            self.acknowledged.write(f"{file_id} {hashlib.sha256(data).hexdigest()}\n")

        status, found = read(connection, file_id)
        if status != 200:
            return f"read {status}"
        return None if found == data else "wrong bytes"

    def client(self, address, organization):
        connection = http.client.HTTPConnection(address, timeout=30)
        while True:
            began = time.monotonic()
            try:
                problem = self.once(connection, organization)
            except (OSError, http.client.HTTPException) as error:
                problem = type(error).__name__
                connection.close()
            with self.lock:
                if problem is None:
                    self.seconds[organization].append(time.monotonic() - began)
                else:
                    count = self.failed[organization].get(problem, 0)
                    self.failed[organization][problem] = count + 1
            time.sleep(0.05)

    def print(self, window):
        print(f"requests {window}:")
        with self.lock:
            for organization, name in ORGANIZATIONS.items():
                seconds, failed = sorted(self.seconds[organization]), self.failed[organization]
                at = lambda part: f"{1000 * seconds[int(len(seconds) * part)]:.0f} ms" if seconds else "-"
                print(f"  {name}: {len(seconds)} done, p50 {at(0.5)}, p99 {at(0.99)}; failed: {failed or 'none'}")
                self.seconds[organization], self.failed[organization] = [], {}
        sys.stdout.flush()


def load(address, home):
    tally = Tally(home)
    for organization in 2 * list(ORGANIZATIONS):
        threading.Thread(target=tally.client, args=(address, organization), daemon=True).start()
    window = (home / "window").read_text()
    while window.strip() != "end":
        time.sleep(0.2)
        last, window = window, (home / "window").read_text() or window
        if window != last:
            tally.print(last.strip())


def check(address, home):
    connection = http.client.HTTPConnection(address)
    files = [line.split() for line in (home / "acknowledged").read_text().splitlines()]
    bad = 0
    for file_id, digest in files:
        status, body = read(connection, file_id)
        if status != 200 or hashlib.sha256(body).hexdigest() != digest:
            print(f"{file_id}: {status}, {len(body)} bytes")
            bad += 1
    print(f"{len(files)} acknowledged files, {bad} missing or wrong")
    sys.exit(bad > 0)


async def pass_on(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


async def proxy(port, target):
    host, target_port = target.split(":")

    async def serve(reader, writer):
        try:
            to_reader, to_writer = await asyncio.open_connection(host, target_port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(pass_on(reader, to_writer), pass_on(to_reader, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    role, first, second = sys.argv[1:]
    if role == "proxy":
        asyncio.run(proxy(int(first), second))
    else:
        {"load": load, "check": check}[role](first, pathlib.Path(second))
