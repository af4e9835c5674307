// Names of keys by their ids, for lists that have ids alone. Asked once for each workspace; without the right to see keys, ids
// are shown in short.
import { useLoaded } from "./loaded";
import { get } from "./call";
import { may, workspace } from "./session";

export function useKeyNames(): (id: string | null | undefined) => string {
  const isSeen = may("own_api_keys.list", "workspace_service_api_keys.list", "workspace_user_api_keys.list", "organisation_service_api_keys.list");
  const loaded = useLoaded<Map<string, string>>(isSeen ? `key-names ${workspace.value}` : null, async () => {
    const { data } = await get<{ data: { id: string; name: string }[] }>("/api-keys", { page_size: 100 });
    return new Map(data.map(({ id, name }) => [id, name]));
  });
  const names = loaded.state.value.data;
  return (id) => (id ? (names?.get(id) ?? id.slice(0, 8)) : "");
}
