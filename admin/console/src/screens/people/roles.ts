// Roles that people can have in a workspace, the least first, and which of them somebody may give and take there.
import { actsForAll, session } from "../../api/session";

export const SEAT_ROLES = ["member", "manager", "admin"];

/** None above their own, and members give none. `of` is the slug or id of the workspace. */
export function givableRoles(of: string): string[] {
  if (actsForAll.value) return SEAT_ROLES;
  const own = session.value!.workspaces.find(({ id, slug }) => slug === of || id === of)?.role ?? "";
  return rolesUpTo(own);
}

export const rolesUpTo = (role: string) => (role === "member" ? [] : SEAT_ROLES.slice(0, SEAT_ROLES.indexOf(role) + 1));
