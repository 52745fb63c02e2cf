// Node's http module: two constant responses on one thread.
import { createServer } from "node:http";

const [host, port] = process.argv.slice(2);
const responses = {
  "/plaintext": ["text/plain", "Hello, World!"],
  "/json": ["application/json", '{"message":"Hello, World!"}'],
};

const server = createServer((request, response) => {
  const found = responses[request.url];
  if (!found) {
    response.writeHead(404).end();
    return;
  }
  const [type, body] = found;
  response.writeHead(200, { "Content-Type": type, "Content-Length": body.length, Server: "node" });
  response.end(body);
});
// Longer than any run.
server.keepAliveTimeout = 300_000;
server.listen({ host, port: Number(port), backlog: 16_384 });
