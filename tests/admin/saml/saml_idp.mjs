// npm `saml-idp` as it is, for one service provider. Arguments: the folder of its key and certificate, and of ours where
// assertions are to be encrypted; its entity id; ours; our consumer URL. Says where it is once it listens.
import { existsSync } from "node:fs";
import samlIdp from "saml-idp";

const [folder, issuer, audience, acsUrl] = process.argv.slice(2);
const say = console.log;
// It tells of everything it does; only its address is for us.
console.log = (text) => {
  const metadata = /http:\/\/localhost:(\d+)\/metadata/.exec(String(text));
  if (metadata) say(`http://127.0.0.1:${metadata[1]}`);
};
const file = (name) => `${folder}/${name}.pem`;
const encryption = existsSync(file("sp"))
  ? { encryptAssertion: true, encryptionCert: file("sp"), encryptionPublicKey: file("sp-public") }
  : {};
samlIdp.runServer({
  host: "127.0.0.1", port: 0, issuer, audience, acsUrl, cert: file("cert"), key: file("key"), ...encryption,
});
