"""What a proxy must not hold back: events, and the bytes of an upload that goes on.

Arguments: the URL of the service behind the proxy, the proxy's certificate. FILESTORE_KEY is a key that may read and
write. The proxy listens on 127.0.0.1, whatever its name is.
"""

import http.client
import json
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from urllib.parse import urlsplit

BASE, CERTIFICATE = urlsplit(sys.argv[1]), sys.argv[2]
KEY = {"Authorization": f"Bearer {os.environ['FILESTORE_KEY']}"}
PATIENCE_S = 30
PROMPT_S = 1.0
TUS = {"Tus-Resumable": "1.0.0", **KEY}
PIECE = {**TUS, "Content-Type": "application/offset+octet-stream"}
PLACE = "organization_id=7&sub_system=deploy"


class Connection(http.client.HTTPSConnection):
    """A connection to the proxy, by its name."""

    def __init__(self):
        context = ssl.create_default_context(cafile=CERTIFICATE)
        super().__init__(BASE.hostname, BASE.port, timeout=PATIENCE_S, context=context)
        self.trusts = context

    def connect(self):
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S)
        self.sock = self.trusts.wrap_socket(plain, server_hostname=self.host)


def call(method, path, status, headers=KEY, body=None):
    """Makes a request, and returns the headers and the body of a reply with the status."""
    connection = Connection()
    connection.request(method, path if path.startswith(BASE.path) else BASE.path + path, body, headers)
    reply = connection.getresponse()
    text = reply.read()
    assert reply.status == status, f"{method} {path}: {reply.status} {text}"
    connection.close()
    return reply.headers, text


def upload():
    """Uploads a small file, and returns its id and the time of the reply."""
    headers = {**KEY, "Content-Type": "text/plain"}
    _, text = call("POST", f"/api/v1/uploads?{PLACE}", 201, headers, b"hello")
    return json.loads(text)["file_id"], time.monotonic()


def check_stream(*options):
    """Reads a stream by curl: in HTTP/2 where the proxy has it."""
    host = f"{BASE.hostname}:{BASE.port}:127.0.0.1"
    command = ["curl", "-sN", *options, "--cacert", CERTIFICATE, "--resolve", host, "--max-time", str(PATIENCE_S)]
    command += ["-H", f"Authorization: {KEY['Authorization']}", "-H", "Accept: text/event-stream", "-D", "-"]
    command += [f"{BASE.geturl()}/api/v1/events?after=end&types=file.uploaded"]
    curl = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        lines = iter(curl.stdout.readline, "")
        version = next(lines).split(" ")[0]
        for line in lines:
            # The first block names the place from which the stream goes on.
            if line.startswith("id: "):
                break
        file, answered = upload()
        data = next(line for line in lines if line.startswith("data: "))
        took = time.monotonic() - answered
        assert json.loads(data[len("data: "):])["data"]["file_id"] == file, data
        assert took < PROMPT_S, f"the stream brought an event {took:.2f} s after the reply"
        return f"stream in {version}: {took * 1000:.0f} ms"
    finally:
        curl.kill()
        curl.wait()


def check_poll():
    _, text = call("GET", "/api/v1/events?after=end", 200)
    place, came = json.loads(text)["next"], []

    def wait():
        _, text = call("GET", f"/api/v1/events?types=file.uploaded&wait=20&after={place}", 200)
        came.append((json.loads(text)["events"], time.monotonic()))

    waiting = threading.Thread(target=wait)
    waiting.start()
    file, answered = upload()
    waiting.join()
    [(events, at)] = came
    assert [event["data"]["file_id"] for event in events] == [file], events
    assert at - answered < PROMPT_S, f"the page came {at - answered:.2f} s after the reply"
    return f"page that waits: {(at - answered) * 1000:.0f} ms"


def check_upload():
    """An upload whose connection breaks within a piece goes on where the bytes ended."""
    size = 6_000_000
    content = os.urandom(size)
    creation = {**TUS, "Upload-Length": str(size)}
    created, _ = call("POST", f"/api/v1/uploads?{PLACE}&original_name=film.bin", 201, creation)
    path = urlsplit(created["Location"]).path
    assert path.startswith(BASE.path), created["Location"]

    deadline = time.monotonic() + PATIENCE_S
    offset = 0
    while offset == 0:
        # Half of the piece. A proxy that keeps it to itself lets the offset stay where it was.
        cut = Connection()
        cut.putrequest("PATCH", path)
        for name, value in {**PIECE, "Upload-Offset": "0", "Content-Length": str(size)}.items():
            cut.putheader(name, value)
        cut.endheaders(content[: size // 2])
        offset = int(call("HEAD", path, 200, TUS)[0]["Upload-Offset"])
        cut.close()
        assert time.monotonic() < deadline, "the proxy passes nothing on before the end of a body"

    rest = {**PIECE, "Upload-Offset": str(offset), "Prefer": "return=representation"}
    _, text = call("PATCH", path, 200, rest, content[offset:])
    _, stored = call("GET", f"/api/v1/files/{json.loads(text)['file_id']}", 200)
    assert stored == content, "the file has other bytes"
    return f"upload: broke off in its piece, went on at {offset} of {size} bytes"


outcomes = [check_stream("--http1.1"), check_stream("--http2"), check_poll(), check_upload()]
print("; ".join(outcomes))
