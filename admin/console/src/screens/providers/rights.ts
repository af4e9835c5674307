// What the person may do with providers here.
import { may } from "../../api/session";

export const mayConnectProviders = () => may("workspace_integrations.create", "organisation_integrations.create");
