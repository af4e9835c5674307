// npm `oidc-provider` with one client, whose every visitor is Ada. Arguments: redirect URI, post-logout URI, URI for
// back-channel logout, secret. Says its issuer once it listens.
import { createServer } from "node:http";
import * as library from "oidc-provider";

const Provider = library.Provider ?? library.default;
const [redirectUri, postLogoutUri, backchannelUri, secret] = process.argv.slice(2);
const server = createServer();
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [{
      client_id: "gateway",
      client_secret: secret,
      redirect_uris: [redirectUri],
      post_logout_redirect_uris: [postLogoutUri],
      backchannel_logout_uri: backchannelUri,
      backchannel_logout_session_required: true,
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
    }],
    cookies: { keys: ["for tests"] },
    pkce: { required: () => true },
    claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["given_name", "family_name"] },
    features: {
      devInteractions: { enabled: false },
      backchannelLogout: { enabled: true },
      rpInitiatedLogout: { enabled: true },
    },
    // Its dispatcher ends connections to loopback, where the gateway of a test is.
    fetch: (url, { dispatcher, ...options }) => fetch(url, options),
    findAccount: (_, id) => ({
      accountId: id,
      claims: async () => ({
        sub: id, email: `${id}@home.test`, email_verified: true, given_name: "Ada", family_name: "Lovelace",
      }),
    }),
    loadExistingGrant: async (ctx) => {
      const grant = new provider.Grant({ clientId: ctx.oidc.client.clientId, accountId: ctx.oidc.session.accountId });
      grant.addOIDCScope("openid email profile offline_access");
      await grant.save();
      return grant;
    },
    interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  });
  const answer = provider.callback();
  server.on("request", (request, response) => {
    if (!request.url.startsWith("/interaction/")) return answer(request, response);
    provider.interactionFinished(request, response, { login: { accountId: "ada" } });
  });
  console.log(issuer);
});
