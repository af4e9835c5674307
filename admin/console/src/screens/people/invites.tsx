// Invitations: who may come, until when. The link of one is shown once, for whoever passes it on by hand.
import { useSignal } from "@preact/signals";
import { call, get, post } from "../../api/call";
import { forget, useLoaded } from "../../api/loaded";
import type { Page } from "../../api/page";
import { may, workspace, workspaceName } from "../../api/session";
import { t } from "../../i18n";
import { AsText } from "../../kit/as_text";
import { Tag } from "../../kit/basics";
import { pageNumber, Pages } from "../../kit/pages";
import { OneTimeSecret } from "../../kit/one_time_secret";
import { Empty, Failed, Part } from "../../kit/states";
import { Confirm, notify, Side } from "../../kit/surfaces";
import { dateAndTime, visible } from "../../kit/words";
import { useWork } from "../../kit/work";
import { param, setParams, withParams } from "../../nav/query";
import { NewInvite } from "./new_invite";
import type { Invite } from "./types";

const PAGE = 50;
const MEANINGS = { pending: "warn", accepted: "ok", cancelled: "bad", expired: "bad" } as const;

export function Invites() {
  const texts = t().people;
  const [page, isNew] = [pageNumber(), param("new") === "1"];
  const query = { page_size: PAGE, current_page: page - 1 };
  const invites = useLoaded<Page<Invite>>(`invites ${workspace.value} ${page}`, () => get("/admin/users/invites", query));
  const mayInvite = may("organisation_users.create");
  const invite = mayInvite && (
    <a class="button main" href={withParams({ new: "1" })}>
      {texts.invite}
    </a>
  );
  return (
    <>
      <div class="row">
        <AsText path="/admin/users/invites" query={query} />
        {invite}
      </div>
      <section class="panel">
        <Part state={invites.state.value} again={invites.reload}>
          {(found) =>
            found.total === 0 ? (
              <Empty title={texts.noInvites} action={invite}>
                {texts.noInvitesWhy}
              </Empty>
            ) : (
              <>
                <Table invites={found.data} changed={invites.reload} />
                <Pages size={PAGE} number={found.data.length} total={found.total} />
              </>
            )
          }
        </Part>
      </section>
      {isNew && mayInvite && (
        <Side title={texts.invite} close={() => setParams({ new: null })}>
          <NewInvite done={invites.reload} />
        </Side>
      )}
    </>
  );
}

function Table({ invites, changed }: { invites: Invite[]; changed: () => void }) {
  const texts = t().people;
  return (
    <div class="scroll">
      <table class="table cards">
        <thead>
          <tr>
            <th scope="col">{texts.email}</th>
            <th scope="col">{t().state.status}</th>
            <th scope="col">{texts.role}</th>
            <th scope="col">{texts.parts.workspaces}</th>
            <th scope="col">{texts.until}</th>
            <th scope="col">
              <span class="hidden-visually">{t().state.actions}</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {invites.map((invite) => (
            <tr key={invite.id}>
              <td>{visible(invite.email)}</td>
              <td>
                <Tag meaning={MEANINGS[invite.status as keyof typeof MEANINGS]}>{texts.inviteStatuses[invite.status] ?? invite.status}</Tag>
              </td>
              <td>{texts.roles[invite.role] ?? invite.role}</td>
              <td>{invite.workspaces.map(({ workspace_id, role }) => `${visible(workspaceName(workspace_id))} (${texts.roles[role] ?? role})`).join(", ")}</td>
              <td class="nowrap">{dateAndTime(new Date(invite.expires_at))}</td>
              <td>
                <InviteActions invite={invite} changed={changed} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** What can be done to an invitation that nobody accepted. */
function InviteActions({ invite, changed }: { invite: Invite; changed: () => void }) {
  const texts = t().people;
  const link = useSignal<string | null>(null);
  const isRevoking = useSignal(false);
  const work = useWork();
  const path = `/admin/users/invites/${encodeURIComponent(invite.id)}`;
  const isOpen = invite.status === "pending" || invite.status === "expired";
  const resend = () =>
    work.run(async () => {
      link.value = (await post<{ invite_link: string }>(`${path}/resend`)).invite_link;
      forget();
      changed();
    });
  const revoke = async () => {
    if (!(await work.run(() => call("DELETE", path)))) return;
    isRevoking.value = false;
    forget();
    notify(texts.revoked);
    changed();
  };
  if (link.value) return <OneTimeSecret text={link.value} hint={texts.linkWhy} />;
  return (
    <span class="row">
      {isOpen && may("organisation_users.create") && (
        <button type="button" class="button small" disabled={work.isBusy.value} onClick={() => void resend()} aria-label={`${texts.resend}: ${invite.email}`}>
          {texts.resend}
        </button>
      )}
      {invite.status === "pending" && may("organisation_users.delete") && (
        <button type="button" class="button small bad" onClick={() => (isRevoking.value = true)} aria-label={`${texts.revoke}: ${invite.email}`}>
          {texts.revoke}
        </button>
      )}
      {work.fault.value && !isRevoking.value && <Failed fault={work.fault.value} />}
      {isRevoking.value && (
        <Confirm
          title={`${texts.revoke}: ${visible(invite.email)}`} text={texts.revokeWhy} button={texts.revoke} isBad fault={work.fault.value} isBusy={work.isBusy.value} confirm={() => void revoke()}
          close={() => (isRevoking.value = false)}
        />
      )}
    </span>
  );
}
