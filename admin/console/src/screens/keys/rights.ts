// What the person may do with keys here. Rights are by the kind of a key; one's own keys have rights of their own.
import { may, session } from "../../api/session";
import type { Key } from "./types";

type Verb = "update" | "rotate" | "delete";

const NAMES: Record<string, string> = { "workspace-service": "workspace_service", "workspace-user": "workspace_user", "organisation-service": "organisation_service" };

export const mayMakeKeys = () => may("workspace_service_api_keys.create", "workspace_user_api_keys.create", "organisation_service_api_keys.create");

/** By the rights of its kind, whoever it belongs to. */
export const mayManageKey = ({ type }: Pick<Key, "type">, verb: Verb) => may(`${NAMES[type] ?? type}_api_keys.${verb}`);

/** Their own key, too; of that the name is changed and it is suspended, and nothing else is. */
export function mayChangeKey(key: Pick<Key, "type" | "user_id">, verb: Verb): boolean {
  const isOwn = !!key.user_id && key.user_id === session.value?.user.id;
  return mayManageKey(key, verb) || (isOwn && may(`own_api_keys.${verb}`));
}
