// An identity provider by npm's samlp: reads our requests, verifies their signature, and answers for one person.
import { readFileSync } from "node:fs";
import http from "node:http";
import samlp from "samlp";

const [folder, entity] = process.argv.slice(2);
const read = (name) => readFileSync(`${folder}/${name}`, "utf8");
const person = {
  id: "ada", emails: [{ value: "ada@acme.test" }], displayName: "Ada", name: { givenName: "Ada", familyName: "L" },
};

const server = http.createServer((request, response) => {
  const query = Object.fromEntries(new URL(request.url, "http://idp.test").searchParams);
  request.query = query;
  response.set = (name, value) => response.setHeader(name, value);
  response.send = (body) => response.end(String(body));
  const fail = (error) => { response.statusCode = 500; response.end(String(error)); };
  samlp.parseRequest(request, (error, asked) => {
    if (error) return fail(error);
    const options = {
      issuer: entity, cert: read("cert.pem"), key: read("key.pem"),
      recipient: asked.assertionConsumerServiceURL, destination: asked.assertionConsumerServiceURL,
      signResponse: query.signs === "response", signAssertion: query.signs !== "response",
      getPostURL: (audience, dom, request, done) => done(null, asked.assertionConsumerServiceURL),
      getUserFromRequest: () => person,
    };
    if (query.Signature) options.signingCert = read("sp.pem");
    if (query.cipher) {
      Object.assign(options, { encryptionCert: read("sp.pem"), encryptionPublicKey: read("sp-public.pem"), encryptionAlgorithm: query.cipher });
    }
    samlp.auth(options)(request, response, fail);
  });
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/sso`));
