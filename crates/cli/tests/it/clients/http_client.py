"""What Python's http.client makes of the server: argv[1] is its port. Says how much it has looked at."""

import http.client
import json
import sys

port = int(sys.argv[1])
looked_at = 0


def is_so(found, expected, about):
    global looked_at
    looked_at += 1
    if found != expected:
        sys.exit(f"{about}: {found!r}, expected was {expected!r}")


class Connection(http.client.HTTPConnection):
    def ask(self, method, target, **fields):
        headers = {name.replace("_", "-"): value for name, value in fields.items()}
        self.request(method, target, headers=headers)
        answer = self.getresponse()
        return answer, answer.read()


connection = Connection("127.0.0.1", port, timeout=20)

# One connection for everything: where the server ended it, its socket would be another one.
answer, body = connection.ask("GET", "/f.txt")
is_so((answer.status, answer.reason, answer.version, body), (200, "OK", 11, b"content"), "a file")
socket = connection.sock
etag, modified = answer.getheader("ETag"), answer.getheader("Last-Modified")
is_so(etag.startswith('"') and modified.endswith(" GMT"), True, "a version")

answer, body = connection.ask("HEAD", "/f.txt")
is_so((answer.status, answer.getheader("Content-Length"), body), (200, "7", b""), "a head alone")

for fields, status, expected in [
    ({"If_None_Match": etag}, 304, b""),
    ({"If_Modified_Since": modified}, 304, b""),
    ({"If_Match": etag}, 200, b"content"),
    ({"If_Match": '"other"'}, 412, None),
    ({"If_Unmodified_Since": modified}, 200, b"content"),
    ({"Range": "bytes=1-3"}, 206, b"ont"),
    ({"Range": "bytes=-3"}, 206, b"ent"),
    ({"Range": "bytes=1-3", "If_Range": etag}, 206, b"ont"),
    ({"Range": "bytes=1-3", "If_Range": '"other"'}, 200, b"content"),
    ({"Range": "bytes=99-"}, 416, None),
]:
    answer, body = connection.ask("GET", "/f.txt", **fields)
    # What an error says is for people.
    is_so((answer.status, body if status < 400 else None), (status, expected), fields)
    is_so(connection.sock is socket, True, f"kept alive after {fields}")

answer, body = connection.ask("GET", "/data.txt", Accept_Encoding="gzip")
is_so((answer.getheader("Content-Encoding"), body), ("gzip", b"gzipped"), "a coding")
is_so(answer.getheader("Vary"), "Accept-Encoding", "what it depends on")
coded = answer.getheader("ETag")
answer, body = connection.ask("GET", "/data.txt", Accept_Encoding="gzip", If_None_Match=coded)
is_so((answer.status, answer.getheader("ETag")), (304, coded), "the coding's own version")
answer, body = connection.ask("GET", "/data.txt", If_None_Match=coded)
is_so((answer.status, body), (200, b"0123456789"), "no other coding's version")

answer, body = connection.ask("GET", "/many/", Accept="application/json")
is_so(answer.getheader("Content-Type"), "application/json", "a list")
entries = json.loads(body)["entries"]
is_so(len(entries), 300, "its entries")
is_so(sorted(entries[7]), ["href", "modified", "name", "size", "type"], "what an entry says")
is_so({entry["type"] for entry in entries}, {"file"}, "what they are")
names = [entry["name"] for entry in entries]
is_so(names == sorted(names), True, "their order")
answer, body = connection.ask("GET", "/many/", Accept="text/html")
is_so((answer.getheader("Vary"), body.count(b"<a href=") >= 300), ("Accept", True), "a page")

for target, status, location in [("/many", 301, "/many/"), ("/old/a?b", 308, "/new/a?b")]:
    answer, _ = connection.ask("GET", target)
    is_so((answer.status, answer.getheader("Location")), (status, location), target)
answer, body = connection.ask("GET", "/none")
is_so((answer.status, body), (404, b"not here"), "a page of the site for an error")

# A body in chunks, to what takes none.
connection.request("POST", "/f.txt", body=iter([b"a" * 1000] * 50), encode_chunked=True)
answer = connection.getresponse()
is_so((answer.status, answer.getheader("Allow")), (405, "GET, HEAD, OPTIONS"), "a body in chunks")
answer.read()
answer, body = connection.ask("GET", "/f.txt", Connection="close")
is_so((answer.status, answer.will_close, body), (200, True, b"content"), "the last answer")
print(f"{looked_at} checks")
