// Who is signed in, where they act, and what they may do there: all of it as the interface tells it.
import { computed, signal } from "@preact/signals";
import { acting, get } from "./call";
import { dropDrafts } from "./drafts";
import { param } from "../nav/query";

export interface Workspace {
  id: string;
  slug: string;
  name: string;
  role: string;
}

export interface Session {
  id: string;
  provider: string;
  user: { id: string; email: string; first_name: string | null; last_name: string | null; role: string };
  organisation: { id: string; name: string };
  csrf_token: string;
  expires_at: string;
  workspaces: Workspace[];
  acting: { workspace_id: string | null; scopes: string[] } | null;
}

export const session = signal<Session | null>(null);

/** Owners and admins may act for the whole organisation. */
export const actsForAll = computed(() => ["owner", "admin"].includes(session.value?.user.role ?? ""));

/** `*`, or the slug of a workspace: what the address names, else the widest that the person has. */
export const workspace = computed(() => {
  const named = param("ws");
  if (named) return named;
  return actsForAll.value ? "*" : (session.value?.workspaces[0]?.slug ?? "");
});

acting.workspace = () => workspace.value;

const read = (where: string) => get<Session>("/auth/session", undefined, { workspace: where });

let loads = 0;

/**
 * Asked again for each workspace, since rights differ by it. Where nobody named one, the role says which it is.
 * False when a later question has overtaken this one.
 */
export async function loadSession(): Promise<boolean> {
  const mine = ++loads;
  try {
    for (let where = param("ws"); ; where = workspace.value) {
      const told = await read(where);
      if (mine !== loads) return false;
      acting.csrf = told.csrf_token;
      session.value = told;
      if (workspace.value === where) return true;
    }
  } catch (error) {
    if (mine !== loads) return false;
    throw error;
  }
}

/**
 * Looks whether who is signed in is still the person of this page: in another tab somebody may have signed out, or in as
 * another. Then the page begins anew. True when only the token is another.
 */
export async function lookAgain(): Promise<boolean> {
  const before = session.value;
  if (!before) return false;
  const told = await read(workspace.value);
  if (told.id !== before.id || told.user.id !== before.user.id) {
    dropDrafts();
    location.reload();
    return false;
  }
  const isNew = told.csrf_token !== acting.csrf;
  acting.csrf = told.csrf_token;
  return isNew;
}

acting.hasNewToken = lookAgain;

/** Whether the person has one of these scopes here. Only for what is shown: the interface decides. */
export function may(...scopes: string[]): boolean {
  const held = session.value?.acting?.scopes ?? [];
  return scopes.some((scope) => held.includes(scope));
}

export const nameOf = (user: Session["user"]) => [user.first_name, user.last_name].filter(Boolean).join(" ") || user.email;

/** The name of a workspace by its id, as far as the person knows it. */
export function workspaceName(id: string | null | undefined): string {
  if (!id) return "";
  const known = session.value?.workspaces.find((one) => one.id === id || one.slug === id);
  return known?.name ?? id;
}

/** The short name of a workspace by its id; the id where the person does not know it. */
export const workspaceSlug = (id: string | null | undefined) => session.value?.workspaces.find((one) => one.id === id)?.slug ?? id ?? "";
