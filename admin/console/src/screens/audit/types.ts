// A line of the audit trail, and what people read of it.

export interface Entry {
  id: string;
  timestamp: string;
  method: string;
  uri: string;
  request_id: string | null;
  request_body: string | null;
  user_id: string | null;
  user_email: string | null;
  user_type: string;
  api_key_name: string | null;
  workspace_id: string | null;
  workspace_name: string | null;
  response_status_code: number;
  resource_type: string;
  resource_id: string | null;
  action: string;
  client_ip: string | null;
  country: string | null;
  error: string | null;
  before: Record<string, unknown> | null;
  after: Record<string, unknown> | null;
  sequence: number | null;
}

export interface EntryPage {
  records: Entry[];
  total: number;
}

/** Who did it, by the name that people know. */
export const actorOf = ({ user_email, api_key_name, user_id, user_type }: Entry) => user_email ?? api_key_name ?? user_id?.slice(0, 8) ?? user_type;

/** The name of the object, as it was afterwards or before. */
export function objectOf({ before, after, resource_id }: Entry): string {
  const named = [after, before].flatMap((one) => [one?.name, one?.email, one?.slug]).find((name) => typeof name === "string" && name);
  return (named as string | undefined) ?? resource_id ?? "";
}
