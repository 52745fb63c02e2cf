"""Checks a server with Python's http.client: argv[1] is its address. Prints the number of checks."""

import gzip
import http.client
import json
import sys

host, port = sys.argv[1].split(":")
checks = 0


def expect(found, expected, about):
    global checks
    checks += 1
    if found != expected:
        sys.exit(f"{about}: {found!r}, expected {expected!r}")


class Connection(http.client.HTTPConnection):
    def exchange(self, method, target, **fields):
        headers = {name.replace("_", "-"): value for name, value in fields.items()}
        self.request(method, target, headers=headers)
        response = self.getresponse()
        return response, response.read()


connection = Connection(host, int(port), timeout=20)

# One connection for everything: if the server closed it, the socket would be another one.
response, body = connection.exchange("GET", "/f.txt")
expect((response.status, response.reason, response.version, body), (200, "OK", 11, b"content"), "a file")
socket = connection.sock
etag, modified = response.getheader("ETag"), response.getheader("Last-Modified")
expect(etag.startswith('"') and modified.endswith(" GMT"), True, "a version")

response, body = connection.exchange("HEAD", "/f.txt")
expect((response.status, response.getheader("Content-Length"), body), (200, "7", b""), "HEAD")

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
    response, body = connection.exchange("GET", "/f.txt", **fields)
    # The text of an error may change.
    expect((response.status, body if status < 400 else None), (status, expected), fields)
    expect(connection.sock is socket, True, f"kept alive after {fields}")

response, body = connection.exchange("GET", "/data.txt", Accept_Encoding="gzip")
expect((response.getheader("Content-Encoding"), gzip.decompress(body)), ("gzip", b"0123456789"), "a coding")
expect(response.getheader("Vary"), "Accept-Encoding", "Vary")
coded = response.getheader("ETag")
response, body = connection.exchange("GET", "/data.txt", Accept_Encoding="gzip", If_None_Match=coded)
expect((response.status, response.getheader("ETag")), (304, coded), "the coding's own version")
response, body = connection.exchange("GET", "/data.txt", If_None_Match=coded)
expect((response.status, body), (200, b"0123456789"), "no other coding's version")

response, body = connection.exchange("GET", "/many/", Accept="application/json")
expect(response.getheader("Content-Type"), "application/json", "a list")
entries = json.loads(body)["entries"]
expect(len(entries), 300, "its entries")
expect(sorted(entries[7]), ["href", "modified", "name", "size", "type"], "keys of an entry")
expect({entry["type"] for entry in entries}, {"file"}, "types of entries")
names = [entry["name"] for entry in entries]
expect(names == sorted(names), True, "their order")
response, body = connection.exchange("GET", "/many/", Accept="text/html")
expect((response.getheader("Vary"), body.count(b"<a href=") >= 300), ("Accept", True), "a page")

for target, status, location in [("/many", 301, "/many/"), ("/old/a?b", 308, "/new/a?b")]:
    response, _ = connection.exchange("GET", target)
    expect((response.status, response.getheader("Location")), (status, location), target)
response, body = connection.exchange("GET", "/none")
expect((response.status, body), (404, b"not here"), "a page of the site for an error")

# A body in chunks, to what takes none.
connection.request("POST", "/f.txt", body=iter([b"a" * 1000] * 50), encode_chunked=True)
response = connection.getresponse()
expect((response.status, response.getheader("Allow")), (405, "GET, HEAD, OPTIONS"), "a body in chunks")
response.read()
response, body = connection.exchange("GET", "/f.txt", Connection="close")
expect((response.status, response.will_close, body), (200, True, b"content"), "the last response")
print(f"{checks} checks")
