// As much of a browser as a sign-in needs: cookies for each host, redirects, and forms that are filled in and sent.

export class Browser {
  #cookies = new Map();

  async open(url, options = {}) {
    const { origin } = new URL(url);
    const cookies = [...(this.#cookies.get(origin) ?? new Map())].map(([name, value]) => `${name}=${value}`).join("; ");
    const headers = { ...options.headers, ...(cookies && { cookie: cookies }) };
    const answer = await fetch(url, { ...options, headers, redirect: "manual" });
    const kept = this.#cookies.get(origin) ?? new Map();
    for (const cookie of answer.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(cookie);
      if (value) kept.set(name, value);
      else kept.delete(name);
    }
    this.#cookies.set(origin, kept);
    return answer;
  }

  submit(url, fields, headers = {}) {
    const body = new URLSearchParams(fields);
    return this.open(url, { method: "POST", body, headers });
  }

  // Follows redirects and signs in where it is asked to, until it is sent to an address that begins like `goal`.
  async signIn(url, login, goal) {
    for (let step = 0; step < 20; step += 1) {
      if (url.startsWith(goal)) return url;
      let answer = await this.open(url);
      if (answer.status === 200) {
        const page = await answer.text();
        const [, action] = /<form[^>]*action="([^"]+)"/.exec(page) ?? [];
        const [, prompt] = /name="prompt" value="([^"]+)"/.exec(page) ?? [];
        if (!action) throw new Error(`no form at ${url}: ${page}`);
        answer = await this.submit(new URL(action, url).href, { prompt, login, password: "any" });
      }
      const location = answer.headers.get("location");
      if (!location) throw new Error(`${answer.status} without a redirect at ${url}: ${await answer.text()}`);
      url = new URL(location, url).href;
    }
    throw new Error("too many redirects");
  }
}
