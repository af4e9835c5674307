// Adding somebody of the organisation to a workspace, by their mail address. Keys that the workspace makes for its new
// members are shown once.
import { useSignal } from "@preact/signals";
import { Fault, get, post } from "../../api/call";
import type { Page } from "../../api/page";
import { may } from "../../api/session";
import { t } from "../../i18n";
import { OneTimeSecret } from "../../kit/one_time_secret";
import { Failed } from "../../kit/states";
import { notify } from "../../kit/surfaces";
import { visible } from "../../kit/words";
import { useWork } from "../../kit/work";
import { givableRoles } from "./roles";
import type { User } from "./types";

export function NewMember({ of, path, done }: { of: string; path: string; done: () => void }) {
  const texts = t().people;
  const who = useSignal("");
  const role = useSignal("member");
  const keys = useSignal<{ key: string; owner: string }[]>([]);
  /** Without the list of people nobody is found by their address. */
  const seesPeople = may("organisation_users.list");
  const label = seesPeople ? texts.memberEmail : texts.memberId;
  const work = useWork();
  const add = async () => {
    const isDone = await work.run(async () => {
      const owner = who.value.trim();
      const id = seesPeople ? await idOf(owner) : owner;
      const made = await post<{ api_keys?: { key?: string }[] }>(path, { users: [{ id, role: role.value }] });
      keys.value = [...keys.value, ...(made.api_keys ?? []).flatMap(({ key }) => (key ? [{ key, owner }] : []))];
    });
    if (!isDone) return;
    who.value = "";
    notify(texts.added);
    done();
  };
  return (
    <div class="form">
      <form
        class="row"
        onSubmit={(event) => {
          event.preventDefault();
          void add();
        }}
      >
        <input type="text" inputMode={seesPeople ? "email" : "text"} required class="mail" aria-label={label} placeholder={label} autocomplete="off" value={who.value} onInput={(event) => (who.value = event.currentTarget.value)} />
        <select class="plain" aria-label={texts.roleHere} value={role.value} onChange={(event) => (role.value = event.currentTarget.value)}>
          {givableRoles(of).map((one) => (
            <option key={one} value={one}>
              {texts.roles[one]}
            </option>
          ))}
        </select>
        <button type="submit" class="button" disabled={work.isBusy.value}>
          {texts.add}
        </button>
      </form>
      {work.fault.value && <Failed fault={work.fault.value} />}
      {keys.value.map(({ key, owner }) => (
        <OneTimeSecret key={key} text={key} hint={texts.keyOf(visible(owner))} />
      ))}
    </div>
  );
}

async function idOf(email: string): Promise<string> {
  const { data } = await get<Page<User>>("/admin/users", { email, status: "active" });
  if (!data[0]) throw new Fault(-1, t().people.unknownPerson, "", "", "", [], null);
  return data[0].id;
}
