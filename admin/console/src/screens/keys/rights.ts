// What the person may do with keys here.
import { may } from "../../api/session";

export const mayMakeKeys = () => may("workspace_service_api_keys.create", "workspace_user_api_keys.create", "organisation_service_api_keys.create");

export const mayChangeKeys = (verb: "update" | "rotate" | "delete") => may(...["own", "workspace_service", "workspace_user", "organisation_service"].map((kind) => `${kind}_api_keys.${verb}`));
