"""Deliveries of a real server, for foreign libraries and for the receivers of the page.

Arguments: the programs of the server and of the command line, and a directory with the receivers.
"""

import datetime
import json
import os
import queue
import re
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import create_server, socket

import standardwebhooks.webhooks as library

SERVER, CLI, WORK = sys.argv[1], sys.argv[2], Path(sys.argv[3])
PATIENCE_S = 60
PROCESSES = []


def until(what, condition):
    deadline = time.monotonic() + PATIENCE_S
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {PATIENCE_S} s: {what}"
        time.sleep(0.05)
    return value


def started(*command, log, **options):
    with open(WORK / log, "a") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, stdin=subprocess.DEVNULL, **options)
    PROCESSES.append(process)
    return process


def ended(process):
    process.kill()
    process.wait()


def told(log):
    return (WORK / log).read_text() if (WORK / log).exists() else ""


def start_server():
    (WORK / "filestore.toml").write_text('[webhooks]\nallow_http = true\nallow = ["127.0.0.0/8"]\n')
    command = [SERVER, "--config", WORK / "filestore.toml", "--listen", "127.0.0.1:0", "--data-dir", WORK / "data"]
    started(*command, log="server.log")
    listens = lambda: re.search(r"listening on (http://\S+)", told("server.log"))
    os.environ["FILESTORE_URL"] = until("the server listens", listens)[1]


def filestore(*arguments):
    done = subprocess.run([CLI, "--json", *arguments], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def webhook(port):
    return filestore("webhook", "create", f"http://127.0.0.1:{port}/hook", "--types", "file.*")


def upload():
    """Uploads a file, and returns its id."""
    uploads = WORK / "upload.txt"
    uploads.write_text("grüße")
    return filestore("upload", str(uploads), "--org", "42", "--sub", "hooks")[0]["file_id"]


class Recorder:
    """An endpoint that keeps what it gets."""

    def __init__(self):
        self.deliveries = deliveries = queue.Queue()

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                deliveries.put({"headers": dict(self.headers), "body": body.decode()})
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def next(self):
        return self.deliveries.get(timeout=PATIENCE_S)


def changed(delivery, **headers):
    """A delivery with other headers."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return {**delivery, "headers": {**{name.lower(): value for name, value in delivery["headers"].items()}, **names}}


def case(name, is_good, delivery, secret, later_s=0):
    return {"name": name, "is_good": is_good, "secret": secret, "later_s": later_s, **delivery}


def cases():
    """Deliveries before, within and after a rotation, and what must not pass for one."""
    recorder = Recorder()
    made = webhook(recorder.port)
    other = webhook(recorder.port)["secret"]
    hook, first = made["id"], made["secret"]
    # Each upload is told to both webhooks.
    filestore("webhook", "disable", filestore("webhook", "list")[1]["id"])

    def delivery(file):
        got = recorder.next()
        event = json.loads(got["body"])
        assert (event["type"], event["data"]["file_id"]) == ("file.uploaded", file), event
        return got

    plain = delivery(upload())
    second = filestore("webhook", "rotate", hook)["secret"]
    overlap = delivery(upload())
    third = filestore("webhook", "rotate", hook, "--overlap", "0")["secret"]
    after = delivery(upload())
    filestore("webhook", "delete", hook)

    stamp = int(changed(plain)["headers"]["webhook-timestamp"])
    body = plain["body"]
    signature = changed(plain)["headers"]["webhook-signature"]
    return [
        case("as it came", True, plain, first),
        case("with the secret of another webhook", False, plain, other),
        case("with a secret that comes later", False, plain, second),
        case("within the overlap, old secret", True, overlap, first),
        case("within the overlap, new secret", True, overlap, second),
        case("within the overlap, a secret that comes later", False, overlap, third),
        case("after the overlap, first secret", False, after, first),
        case("after the overlap, second secret", False, after, second),
        case("after the overlap, newest secret", True, after, third),
        case("four minutes later", True, plain, first, 240),
        case("six minutes later", False, plain, first, 360),
        case("six minutes before", False, plain, first, -360),
        case("another file", False, {**plain, "body": body.replace("file.uploaded", "file.replaced")}, first),
        case("another byte", False, {**plain, "body": body + " "}, first),
        case("another id", False, changed(plain, webhook_id="BwcHBwcHBwcAAAAAAAAwOQ"), first),
        case("another time", False, changed(plain, webhook_timestamp=str(stamp + 1)), first),
        case("another signature", False, changed(plain, webhook_signature="v1," + 43 * "A" + "="), first),
        case("another version", False, changed(plain, webhook_signature=signature.replace("v1,", "v2,")), first),
        case("the signature of another delivery", False, changed(plain, **signed_as(after)), third),
        case("a known signature among others", True, changed(plain, webhook_signature="v2,AAAA " + signature), first),
    ]


def signed_as(delivery):
    return {"webhook_signature": changed(delivery)["headers"]["webhook-signature"]}


def accepts(case):
    """Asks the library for Python, whose clock is `later_s` ahead."""

    class Clock(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.datetime.now(tz) + datetime.timedelta(seconds=case["later_s"])

    library.datetime = Clock
    try:
        library.Webhook(case["secret"]).verify(case["body"].encode(), case["headers"])
        return True
    except library.WebhookVerificationError:
        return False
    finally:
        library.datetime = datetime.datetime


def verify():
    given = cases()
    options = {"cwd": WORK / "typescript", "text": True, "stdout": subprocess.PIPE, "check": True}
    done = subprocess.run(["node", "verify.mjs"], input=json.dumps(given), **options)
    for case, in_javascript in zip(given, json.loads(done.stdout), strict=True):
        outcome = (accepts(case), in_javascript)
        assert outcome == (case["is_good"],) * 2, f"{case['name']}: {outcome} in Python and JavaScript"
    print(len(given), "deliveries, real and false, were told apart in Python and JavaScript")


def free_port():
    with create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def receivers():
    """The receivers of the page get every event, although they are away for a while."""
    commands = {
        "python": [sys.executable, "-m", "flask", "--app", "receiver", "run", "--port"],
        "typescript": ["node", "receiver.js"],
    }
    for language, command in commands.items():
        (WORK / f"{language}.log").write_text("")
        port = free_port()
        made = webhook(port)
        environment = {**os.environ, "HOOK_SECRET": made["secret"]}
        if language == "python":
            command = [*command, str(port)]
        else:
            program = WORK / "typescript" / "receiver.js"
            text = program.read_text()
            assert text.count("8099") == 1, "the page's receiver listens on port 8099"
            program.write_text(text.replace("8099", str(port)))
        start = lambda: started(*command, log=f"{language}.log", cwd=WORK / language, env=environment)

        receiver = start()
        ping = lambda: filestore("webhook", "ping", made["id"])["delivered"]
        until("the receiver answers", lambda: is_open(port))
        assert ping(), "the receiver accepts a ping"
        files = [upload()]
        until("the receiver tells of a file", lambda: files[0] in told(f"{language}.log"))
        ended(receiver)
        files += [upload() for _ in range(3)]
        waits = lambda: filestore("webhook", "show", made["id"])["paused_until"]
        until("the endpoint is away", waits)
        receiver = start()
        until("the receiver has every file", lambda: all(file in told(f"{language}.log") for file in files))
        ended(receiver)
        filestore("webhook", "delete", made["id"])
        print(f"the receiver in {language} has all of {len(files)} events")


def is_open(port):
    with socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


try:
    start_server()
    verify()
    receivers()
except BaseException:
    print(told("server.log")[-4000:], told("python.log")[-2000:], told("typescript.log")[-2000:], file=sys.stderr)
    raise
finally:
    for process in PROCESSES:
        if process.poll() is None:
            ended(process)
