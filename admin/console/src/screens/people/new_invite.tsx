// A new invitation: to the organisation, and at once into workspaces with a role in each.
import { useSignal } from "@preact/signals";
import { post } from "../../api/call";
import { forget } from "../../api/loaded";
import { session } from "../../api/session";
import { t } from "../../i18n";
import { Field } from "../../kit/basics";
import { OneTimeSecret } from "../../kit/one_time_secret";
import { Failed } from "../../kit/states";
import { visible } from "../../kit/words";
import { useWork } from "../../kit/work";
import { SEAT_ROLES } from "./roles";

export function NewInvite({ done }: { done: () => void }) {
  const texts = t().people;
  const email = useSignal("");
  const role = useSignal("member");
  /** Roles by the slug of a workspace. */
  const seats = useSignal<Record<string, string>>({});
  const link = useSignal<string | null>(null);
  const work = useWork();
  const send = () =>
    work.run(async () => {
      const workspaces = Object.entries(seats.value).flatMap(([id, seat]) => (seat ? [{ id, role: seat }] : []));
      link.value = (await post<{ invite_link: string }>("/admin/users/invites", { email: email.value.trim(), role: role.value, workspaces })).invite_link;
      forget();
      done();
    });
  if (link.value) return <OneTimeSecret text={link.value} hint={texts.linkWhy} />;
  const fault = work.fault.value;
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <Field label={texts.email} wrong={fault?.about("email")}>
        {(control) => <input {...control} type="email" required maxLength={255} autocomplete="off" value={email.value} onInput={(event) => (email.value = event.currentTarget.value)} />}
      </Field>
      <Field label={texts.role} hint={texts.roleHints[role.value]} wrong={fault?.about("role")}>
        {(control) => (
          <select {...control} value={role.value} onChange={(event) => (role.value = event.currentTarget.value)}>
            {["member", "admin"].map((one) => (
              <option key={one} value={one}>
                {texts.roles[one]}
              </option>
            ))}
          </select>
        )}
      </Field>
      <fieldset class="form">
        <legend>{texts.parts.workspaces}</legend>
        {session.value!.workspaces.map(({ slug, name }) => (
          <Field key={slug} label={visible(name)}>
            {(control) => (
              <select {...control} value={seats.value[slug] ?? ""} onChange={(event) => (seats.value = { ...seats.value, [slug]: event.currentTarget.value })}>
                <option value="">{texts.noSeat}</option>
                {SEAT_ROLES.map((one) => (
                  <option key={one} value={one}>
                    {texts.roles[one]}
                  </option>
                ))}
              </select>
            )}
          </Field>
        ))}
      </fieldset>
      {fault && <Failed fault={fault} />}
      <div>
        <button type="submit" class="button main" disabled={work.isBusy.value}>
          {texts.invite}
        </button>
      </div>
    </form>
  );
}
