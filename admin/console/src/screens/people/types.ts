// People, invitations, members and workspaces as the interface lists them.

export interface User {
  id: string;
  first_name: string | null;
  last_name: string | null;
  email: string;
  role: string;
  status: string;
  workspace_ids: string[];
  created_at: string;
}

export interface Invite {
  id: string;
  email: string;
  role: string;
  status: string;
  workspaces: { id: string; workspace_id: string; role: string }[];
  created_at: string;
  expires_at: string;
}

export interface Member {
  user_id: string;
  first_name: string | null;
  last_name: string | null;
  email: string;
  org_role: string;
  role: string;
  created_at: string;
}

export interface WorkspaceRow {
  id: string;
  slug: string;
  name: string;
  description: string | null;
  is_default: 0 | 1;
  status: string;
  created_at: string;
}

export const fullName = ({ first_name, last_name }: Pick<User, "first_name" | "last_name">) => [first_name, last_name].filter(Boolean).join(" ");
