// Configs and their versions as the interface answers them.

export interface ConfigRow {
  id: string;
  slug: string;
  name: string;
  workspace_id: string;
  is_default: 0 | 1;
  status: string;
  created_at: string;
  last_updated_at: string;
}

export interface Config extends ConfigRow {
  version_id: string;
  data: { config: Record<string, unknown> };
}

export interface Version {
  version_id: string;
  version: number;
  created_by: string | null;
  created_at: string;
  data: { config: Record<string, unknown> };
}

export const written = (config: unknown) => JSON.stringify(config, null, 2);
