// The person: who they are here, where they are signed in, and how the console looks.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Looks, signOut } from "../account";
import { call, Fault, get } from "../api/call";
import { useLoaded } from "../api/loaded";
import { nameOf, session } from "../api/session";
import { t } from "../i18n";
import { Tag } from "../kit/basics";
import { Failed, Part } from "../kit/states";
import { dateAndTime, visible } from "../kit/words";
import { areLettersOn, setLetters } from "../nav/letters";

interface SessionRow {
  id: string;
  provider: string;
  client_ip: string | null;
  user_agent: string | null;
  created_at: string;
  last_used_at: string | null;
  is_current: boolean;
}

export default function Me() {
  const texts = t().me;
  const me = session.value!;
  useEffect(() => {
    document.title = `${texts.title} · Portcullis`;
  }, []);
  return (
    <>
      <div class="head">
        <h1>{texts.title}</h1>
        <button type="button" class="button" onClick={() => void signOut()}>
          {t().menu.signOut}
        </button>
      </div>
      <div class="split">
        <Sessions />
        <div class="form">
          <section class="panel">
            <header>
              <h2>{texts.person}</h2>
            </header>
            <dl class="facts inside">
              <dt>{t().state.name}</dt>
              <dd>{visible(nameOf(me.user))}</dd>
              <dt>{texts.email}</dt>
              <dd>{visible(me.user.email)}</dd>
              <dt>{texts.role}</dt>
              <dd>
                {me.user.role} · {visible(me.organisation.name)}
              </dd>
              <dt>{texts.workspaces}</dt>
              <dd>{me.workspaces.map(({ name, role }) => `${visible(name)} (${role})`).join(", ")}</dd>
              <dt>{texts.until}</dt>
              <dd>{dateAndTime(new Date(me.expires_at))}</dd>
            </dl>
          </section>
          <section class="panel">
            <header>
              <h2>{texts.look}</h2>
            </header>
            <div class="inside form">
              <Looks />
            </div>
          </section>
          <section class="panel">
            <header>
              <h2>{texts.keyboard}</h2>
            </header>
            <div class="inside form">
              <dl class="facts">
                {texts.shortcuts.map(([keys, does]) => [
                  <dt key={keys}>
                    <code>{keys}</code>
                  </dt>,
                  <dd key={does}>{does}</dd>,
                ])}
              </dl>
              <label class="row">
                <input type="checkbox" checked={areLettersOn.value} onChange={(event) => setLetters(event.currentTarget.checked)} />
                {texts.letters}
              </label>
            </div>
          </section>
        </div>
      </div>
    </>
  );
}

function Sessions() {
  const texts = t().me;
  const fault = useSignal<Fault | null>(null);
  const sessions = useLoaded<{ data: SessionRow[] }>("sessions", () => get("/auth/sessions"));
  const end = async (id: string) => {
    fault.value = null;
    try {
      await call("DELETE", `/auth/sessions/${id}`);
      sessions.reload();
    } catch (error) {
      fault.value = error as Fault;
    }
  };
  return (
    <section class="panel">
      <header>
        <h2>{texts.sessions}</h2>
      </header>
      {fault.value && <Failed fault={fault.value} />}
      <Part state={sessions.state.value} again={sessions.reload} lines={3}>
        {({ data }) => (
          <div class="scroll">
            <table class="table cards">
              <thead>
                <tr>
                  <th scope="col">{texts.browser}</th>
                  <th scope="col">{texts.address}</th>
                  <th scope="col">{texts.since}</th>
                  <th scope="col">{texts.lastUsed}</th>
                  <th scope="col">
                    <span class="hidden-visually">{t().state.actions}</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {data.map((one) => (
                  <tr key={one.id}>
                    <td>
                      <span class="one-line" title={one.user_agent ?? ""}>
                        {visible(one.user_agent ?? "–")}
                      </span>
                    </td>
                    <td>{one.client_ip}</td>
                    <td class="nowrap">{dateAndTime(new Date(one.created_at))}</td>
                    <td class="nowrap">{one.last_used_at ? dateAndTime(new Date(one.last_used_at)) : "–"}</td>
                    <td>
                      {one.is_current ? (
                        <Tag meaning="ok">{texts.current}</Tag>
                      ) : (
                        <button type="button" class="button small" onClick={() => void end(one.id)}>
                          {texts.end}
                        </button>
                      )}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </Part>
    </section>
  );
}
