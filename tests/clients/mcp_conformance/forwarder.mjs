// The suite sends no credentials, so somebody between it and the gateway adds the key. Everything else passes as it came.

import { createServer, request as ask } from "node:http";

// Headers of one connection, which are not the next one's.
const OWN = ["connection", "keep-alive", "transfer-encoding"];

export function forward(port, target, key) {
  const { hostname, port: upstream, pathname } = new URL(target);
  const server = createServer((request, response) => {
    const headers = { ...request.headers, "x-gateway-api-key": key };
    delete headers.connection;
    const onward = ask({ hostname, port: upstream, path: pathname, method: request.method, headers }, (answer) => {
      const passed = Object.entries(answer.headers).filter(([name]) => !OWN.includes(name));
      response.writeHead(answer.statusCode, Object.fromEntries(passed));
      response.flushHeaders();
      answer.pipe(response);
    });
    onward.on("error", () => response.destroy());
    response.on("close", () => onward.destroy());
    request.pipe(onward);
  });
  return new Promise((resolve) => server.listen(port, "127.0.0.1", () => resolve(server)));
}
