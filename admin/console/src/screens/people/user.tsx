// One person of the organisation: their role, where they are signed in, and how they leave.
import { useSignal } from "@preact/signals";
import { call, get, getTagged } from "../../api/call";
import { forget, useLoaded } from "../../api/loaded";
import type { Page } from "../../api/page";
import { may, session, workspaceName } from "../../api/session";
import { t } from "../../i18n";
import { AsText } from "../../kit/as_text";
import { Part } from "../../kit/states";
import { Confirm, notify } from "../../kit/surfaces";
import { dateAndTime, visible } from "../../kit/words";
import { useWork } from "../../kit/work";
import { screen, setParams } from "../../nav/query";
import { RoleChoice } from "./role_choice";
import { fullName, type User } from "./types";

interface SignIn {
  id: string;
  user_agent: string | null;
  client_ip: string | null;
  last_used_at: string;
}

export function UserView({ id, changed }: { id: string; changed: () => void }) {
  const path = `/admin/users/${encodeURIComponent(id)}`;
  const user = useLoaded<{ data: User; tag: string }>(`user ${id}`, () => getTagged<User>(path));
  const again = () => {
    forget();
    user.reload();
    changed();
  };
  return (
    <Part state={user.state.value} again={user.reload}>
      {({ data, tag }) => <OneUser key={tag} user={data} tag={tag} path={path} again={again} left={changed} />}
    </Part>
  );
}

function OneUser({ user, tag, path, again, left }: { user: User; tag: string; path: string; again: () => void; left: () => void }) {
  const texts = t().people;
  const action = useSignal<"signOut" | "remove" | null>(null);
  const work = useWork();
  const signIns = useLoaded<Page<SignIn>>(may("organisation_users.read") ? `user-sessions ${user.id}` : null, () => get(`${path}/sessions`));
  const run = async () => {
    const isDone = await work.run(async () => {
      if (action.value === "signOut") await call("DELETE", `${path}/sessions`);
      else await call("DELETE", path, { headers: { "if-match": tag } });
    });
    if (!isDone) return;
    const isGone = action.value === "remove";
    action.value = null;
    forget();
    notify(isGone ? texts.removed : texts.signedOut);
    if (isGone) {
      setParams({ person: null });
      left();
    } else signIns.reload();
  };
  const roles = session.value!.user.role === "owner" ? ["owner", "admin", "member"] : ["admin", "member"];
  // Nobody but owners does anything to an owner.
  const isWithinReach = user.role !== "owner" || session.value!.user.role === "owner";
  const isOther = user.id !== session.value!.user.id;
  return (
    <div class="log">
      <dl class="facts">
        <dt>{texts.email}</dt>
        <dd>{visible(user.email)}</dd>
        <dt>{t().state.name}</dt>
        <dd>{visible(fullName(user)) || "–"}</dd>
        <dt>{texts.role}</dt>
        <dd>
          {may("organisation_users.update") && isOther && roles.includes(user.role) ? (
            <RoleChoice
              title={visible(user.email)} role={user.role} roles={roles} done={again}
              send={(role, isTrial) => call("PUT", path, { body: { role }, query: { dry_run: isTrial || undefined }, headers: { "if-match": tag } })}
            />
          ) : (
            (texts.roles[user.role] ?? user.role)
          )}
        </dd>
        <dt>{texts.parts.workspaces}</dt>
        <dd>{visible(user.workspace_ids.map(workspaceName).join(", ")) || "–"}</dd>
        <dt>{texts.since}</dt>
        <dd>{dateAndTime(new Date(user.created_at))}</dd>
      </dl>
      <h3>{texts.sessions}</h3>
      <Part state={signIns.state.value} again={signIns.reload} lines={2}>
        {({ data }) =>
          data.length === 0 ? (
            <p class="quiet">{texts.noSessions}</p>
          ) : (
            <ul class="plain-list">
              {data.map((one) => (
                <li key={one.id}>
                  {visible(one.user_agent ?? "–")} <span class="quiet">{one.client_ip} · {dateAndTime(new Date(one.last_used_at))}</span>
                </li>
              ))}
            </ul>
          )
        }
      </Part>
      <div class="row">
        {may("organisation_users.update") && isWithinReach && (
          <button type="button" class="button" onClick={() => (action.value = "signOut")}>
            {texts.signOut}
          </button>
        )}
        {may("organisation_users.delete") && isOther && isWithinReach && (
          <button type="button" class="button bad" onClick={() => (action.value = "remove")}>
            {texts.remove}
          </button>
        )}
        {may("audit_logs.list") && (
          <a class="button" href={screen("audit", { by: user.id, from: "-30d", to: null })}>
            {texts.deeds}
          </a>
        )}
        <AsText path={path} />
      </div>
      {action.value && (
        <Confirm
          title={`${texts[action.value]}: ${visible(user.email)}`} text={texts[`${action.value}Why`]} button={texts[action.value]} isBad fault={work.fault.value} isBusy={work.isBusy.value}
          confirm={() => void run()} close={() => (action.value = null)}
        />
      )}
    </div>
  );
}
