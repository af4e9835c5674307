// The suite sends no credentials, so somebody between it and the gateway adds the key. Everything else passes as it came, and
// in the order in which it came: the suite's client does not wait for the stream that it opens, and the SDK's server asks the
// client over that stream alone, or nobody while there is none. Directly both reach one process one after the other; on two
// connections to the gateway a call could be first on a busy machine, which is nobody's fault that is looked for here.

import { createServer, request as ask } from "node:http";

// Headers of one connection, which are not the next one's.
const OWN = ["connection", "keep-alive", "transfer-encoding"];

export function forward(port, target, key) {
  const { hostname, port: upstream, pathname } = new URL(target);
  // Until the last stream that was asked for is open, or refused.
  let opening = Promise.resolve();
  const server = createServer(async (request, response) => {
    let isOpen = () => {};
    if (request.method === "GET") opening = new Promise((resolve) => (isOpen = resolve));
    else await opening;
    const headers = { ...request.headers, "x-gateway-api-key": key };
    delete headers.connection;
    const onward = ask({ hostname, port: upstream, path: pathname, method: request.method, headers }, (answer) => {
      isOpen();
      const passed = Object.entries(answer.headers).filter(([name]) => !OWN.includes(name));
      response.writeHead(answer.statusCode, Object.fromEntries(passed));
      response.flushHeaders();
      answer.pipe(response);
    });
    onward.on("close", isOpen);
    onward.on("error", () => response.destroy());
    response.on("close", () => onward.destroy());
    request.pipe(onward);
  });
  return new Promise((resolve) => server.listen(port, "127.0.0.1", () => resolve(server)));
}
