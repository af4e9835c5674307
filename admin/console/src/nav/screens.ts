// The screens of the menu: their place in it, and the scopes without which they are not offered. All of them are one file,
// because together they weigh less than one more request costs; an editor will be a file of its own.
import type { ComponentType } from "preact";
import Analytics from "../screens/analytics";
import Audit from "../screens/audit";
import Budgets from "../screens/budgets";
import Keys from "../screens/keys";
import Logs from "../screens/logs";
import Me from "../screens/me";
import Overview from "../screens/overview";
import People from "../screens/people";
import Policies from "../screens/policies";
import Providers from "../screens/providers";
import Routing from "../screens/routing";
import Settings from "../screens/settings";
import Trace from "../screens/trace";

export interface MenuEntry {
  path: string;
  text: "overview" | "logs" | "analytics" | "budgets" | "routing" | "keys" | "providers" | "policies" | "people" | "audit" | "settings" | "me";
  /** One of them is enough. */
  scopes: string[];
  icon: string;
  screen: ComponentType;
}

/** Any of them shows some keys. */
export const KEY_SCOPES = ["own_api_keys.list", "workspace_service_api_keys.list", "workspace_user_api_keys.list", "organisation_service_api_keys.list"];

export const MENU: MenuEntry[][] = [
  [
    { path: "", text: "overview", scopes: [], icon: "M2 9h3l2-6 3 11 2-5h2", screen: Overview },
    { path: "logs", text: "logs", scopes: ["logs.list"], icon: "M2 3.5h12M2 8h12M2 12.5h8", screen: Logs },
    { path: "analytics", text: "analytics", scopes: ["analytics.view"], icon: "M2.5 13.5v-4h2.6v4zM6.7 13.5v-8h2.6v8zM10.9 13.5v-11h2.6v11z", screen: Analytics },
    { path: "budgets", text: "budgets", scopes: ["analytics.view"], icon: "M8 2v12M11 4.5H6.8a2 2 0 0 0 0 4h2.4a2 2 0 0 1 0 4H5", screen: Budgets },
  ],
  [{ path: "routing", text: "routing", scopes: ["configs.list"], icon: "M2 8h4l4-4h4M6 8l4 4h4M12 2l2 2-2 2M12 10l2 2-2 2", screen: Routing }],
  [
    {
      path: "keys", text: "keys", icon: "M9.5 6.5a3.5 3.5 0 1 1-1-2.5 3.5 3.5 0 0 1 1 2.5zm0 0L14 11v2.5h-2.5L10 12",
      scopes: KEY_SCOPES,
      screen: Keys,
    },
    {
      path: "providers", text: "providers", icon: "M3 3h10v4H3zM3 9h10v4H3zM5.5 5h.01M5.5 11h.01",
      scopes: ["providers.list", "organisation_integrations.list", "workspace_integrations.list"], screen: Providers,
    },
    { path: "policies", text: "policies", scopes: ["policies.list"], icon: "M8 1.8l5.2 2v4.4c0 3-2.3 5-5.2 6-2.9-1-5.2-3-5.2-6V3.8zM5.8 8l1.6 1.6L10.4 6.5", screen: Policies },
  ],
  [
    { path: "people", text: "people", scopes: ["organisation_users.list", "workspace_users.list"], icon: "M6 7.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM1.5 13.5a4.5 4.5 0 0 1 9 0M11 3a2.3 2.3 0 0 1 0 4.4M12 9.6a4.4 4.4 0 0 1 2.5 3.9", screen: People },
    { path: "audit", text: "audit", scopes: ["audit_logs.list"], icon: "M3 2h7l3 3v9H3zM5.5 7.5h5M5.5 10.5h5M5.5 4.5h2", screen: Audit },
    { path: "settings", text: "settings", scopes: ["organisation_settings.read"], icon: "M2 5h7M13 5h1M2 11h1M7 11h7M11 3v4M5 9v4", screen: Settings },
  ],
  [{ path: "me", text: "me", scopes: [], icon: "M8 8a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM2.5 14a5.5 5.5 0 0 1 11 0", screen: Me }],
];

/** Screens that the menu does not name, by the first part of their path. */
export const OTHERS: Record<string, ComponentType> = { traces: Trace };
