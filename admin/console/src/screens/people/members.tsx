// The members of one workspace: their role there, who comes and who goes.
import { useSignal } from "@preact/signals";
import { call, get } from "../../api/call";
import { forget, useLoaded } from "../../api/loaded";
import type { Page } from "../../api/page";
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
import { givableRoles } from "./roles";
import { fullName, type Member } from "./types";

const PAGE = 50;

/** `of` is the slug or id of the workspace, `page` the name of the list's page in the address. */
export function Members({ of, page }: { of: string; page?: string }) {
  const texts = t().people;
  const path = `/workspaces/${encodeURIComponent(of)}/users`;
  const query = { page_size: PAGE, current_page: pageNumber(page) - 1 };
  const members = useLoaded<Page<Member>>(`members ${of} ${query.current_page}`, () => get(path, query));
  const changed = () => {
    forget();
    members.reload();
  };
  return (
    <>
      <div class="row">
        {may("workspace_users.create") && <NewMember of={of} path={path} done={changed} />}
        <AsText path={path} query={query} />
      </div>
      <section class="panel">
        <Part state={members.state.value} again={members.reload}>
          {(found) =>
            found.total === 0 ? (
              <Empty title={texts.noMembers}>{texts.noMembersWhy}</Empty>
            ) : (
              <>
                <Table members={found.data} of={of} path={path} changed={changed} />
                <Pages size={PAGE} name={page} number={found.data.length} total={found.total} />
              </>
            )
          }
        </Part>
      </section>
    </>
  );
}

/** Owners and admins of the organisation belong to every workspace. */
const mayRemove = ({ org_role, role }: Member, roles: string[]) => may("workspace_users.delete") && org_role === "member" && roles.includes(role);

function Table({ members, of, path, changed }: { members: Member[]; of: string; path: string; changed: () => void }) {
  const texts = t().people;
  const roles = givableRoles(of);
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
                {may("workspace_users.update") && roles.includes(member.role) ? (
                  <RoleChoice
                    title={visible(member.email)} role={member.role} roles={roles} done={changed}
                    send={(role, isTrial) => call("PUT", `${path}/${member.user_id}`, { body: { role }, query: { dry_run: isTrial || undefined } })}
                  />
                ) : (
                  (texts.roles[member.role] ?? member.role)
                )}
              </td>
              <td class="nowrap">{day(new Date(member.created_at))}</td>
              <td>{mayRemove(member, roles) && <Removal member={member} of={of} path={path} changed={changed} />}</td>
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
