// The members of one workspace: their role there, who comes and who goes.
import { useSignal } from "@preact/signals";
import { call, get } from "../../api/call";
import { forget, useLoaded } from "../../api/loaded";
import { may, workspaceName } from "../../api/session";
import { t } from "../../i18n";
import { AsText } from "../../kit/as_text";
import { pageNumber, Pages } from "../../kit/pages";
import { Empty, Part } from "../../kit/states";
import { Confirm, notify } from "../../kit/surfaces";
import { day, visible } from "../../kit/words";
import { useWork } from "../../kit/work";
import { NewMember } from "./new_member";
import { RoleChoice } from "./role_choice";
import { SEAT_ROLES } from "./roles";
import { fullName, type Member, type Page } from "./types";

const PAGE = 50;

/** `of` is the slug or id of the workspace. */
export function Members({ of }: { of: string }) {
  const texts = t().people;
  const path = `/workspaces/${encodeURIComponent(of)}/users`;
  const query = { page_size: PAGE, current_page: pageNumber() - 1 };
  const members = useLoaded<Page<Member>>(`members ${of} ${query.current_page}`, () => get(path, query));
  const changed = () => {
    forget();
    members.reload();
  };
  return (
    <>
      <div class="row">
        {/* People are found by their address in the organisation's list, which only some may read. */}
        {may("workspace_users.create") && may("organisation_users.list") && <NewMember path={path} done={changed} />}
        <AsText path={path} query={query} />
      </div>
      <section class="panel">
        <Part state={members.state.value} again={members.reload}>
          {(found) =>
            found.data.length === 0 ? (
              <Empty title={texts.noMembers}>{texts.noMembersWhy}</Empty>
            ) : (
              <>
                <Table members={found.data} of={of} path={path} changed={changed} />
                <Pages size={PAGE} number={found.data.length} total={found.total} />
              </>
            )
          }
        </Part>
      </section>
    </>
  );
}

function Table({ members, of, path, changed }: { members: Member[]; of: string; path: string; changed: () => void }) {
  const texts = t().people;
  return (
    <div class="scroll">
      <table class="table cards">
        <thead>
          <tr>
            <th scope="col">{texts.email}</th>
            <th scope="col">{t().state.name}</th>
            <th scope="col">{texts.roleHere}</th>
            <th scope="col">{texts.since}</th>
            <th scope="col">
              <span class="hidden-visually">{t().state.actions}</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {members.map((member) => (
            <tr key={member.user_id + member.role}>
              <td>{visible(member.email)}</td>
              <td>{visible(fullName(member))}</td>
              <td>
                {may("workspace_users.update") ? (
                  <RoleChoice
                    title={visible(member.email)} role={member.role} roles={SEAT_ROLES} done={changed}
                    send={(role, isTrial) => call("PUT", `${path}/${member.user_id}`, { body: { role }, query: { dry_run: isTrial || undefined } })}
                  />
                ) : (
                  (texts.roles[member.role] ?? member.role)
                )}
              </td>
              <td class="nowrap">{day(new Date(member.created_at))}</td>
              <td>{may("workspace_users.delete") && <Removal member={member} of={of} path={path} changed={changed} />}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Removal({ member, of, path, changed }: { member: Member; of: string; path: string; changed: () => void }) {
  const texts = t().people;
  const isAsked = useSignal(false);
  const work = useWork();
  const remove = async () => {
    if (!(await work.run(() => call("DELETE", `${path}/${member.user_id}`)))) return;
    isAsked.value = false;
    notify(texts.removed);
    changed();
  };
  return (
    <>
      <button type="button" class="button small bad" onClick={() => (isAsked.value = true)} aria-label={`${texts.removeMember}: ${member.email}`}>
        {texts.removeMember}
      </button>
      {isAsked.value && (
        <Confirm
          title={`${texts.removeMember}: ${visible(member.email)}`} text={texts.removeMemberWhy(visible(workspaceName(of)))} button={texts.removeMember} isBad fault={work.fault.value} isBusy={work.isBusy.value}
          confirm={() => void remove()} close={() => (isAsked.value = false)}
        />
      )}
    </>
  );
}
