// Adding somebody of the organisation to a workspace, by their mail address. Keys that the workspace makes for its new
// members are shown once.
import { useSignal } from "@preact/signals";
import { Fault, get, post } from "../../api/call";
import { t } from "../../i18n";
import { OneTimeSecret } from "../../kit/one_time_secret";
import { Failed } from "../../kit/states";
import { notify } from "../../kit/surfaces";
import { useWork } from "../../kit/work";
import { SEAT_ROLES } from "./roles";
import type { Page, User } from "./types";

export function NewMember({ path, done }: { path: string; done: () => void }) {
  const texts = t().people;
  const email = useSignal("");
  const role = useSignal("member");
  const keys = useSignal<string[]>([]);
  const work = useWork();
  const add = async () => {
    const isDone = await work.run(async () => {
      const { data } = await get<Page<User>>("/admin/users", { email: email.value.trim(), status: "active" });
      if (!data[0]) throw new Fault(-1, texts.unknownPerson, "", "", "", [], null);
      const made = await post<{ api_keys?: { key?: string }[] }>(path, { users: [{ id: data[0].id, role: role.value }] });
      keys.value = (made.api_keys ?? []).flatMap(({ key }) => (key ? [key] : []));
    });
    if (!isDone) return;
    email.value = "";
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
        <input type="email" required class="mail" aria-label={texts.memberEmail} placeholder={texts.memberEmail} autocomplete="off" value={email.value} onInput={(event) => (email.value = event.currentTarget.value)} />
        <select class="plain" aria-label={texts.roleHere} value={role.value} onChange={(event) => (role.value = event.currentTarget.value)}>
          {SEAT_ROLES.map((one) => (
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
      {keys.value.map((key) => (
        <OneTimeSecret key={key} text={key} hint={t().keys.shown} />
      ))}
    </div>
  );
}
